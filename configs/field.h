#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

/// What the schema (types and the options of configs/options.proto) says about one field, in words
/// for messages and in checks. Works on any message through reflection, so a new field needs no
/// code here. Every function is safe to call from several threads on different messages.
namespace lockstep::config {

/// `parent` and `name` joined as users write them: "optimizer.learning_rate". The root is "".
std::string join_path(std::string_view parent, std::string_view name);

/// Whether `field` is a message, which has fields of its own.
bool holds_fields(const google::protobuf::FieldDescriptor& field);

/// `path` of a list and the index of one of its values: "model.resnet.blocks[2]".
std::string value_path(std::string_view path, int index);

/// "an integer from 1 to 4096", "a number above 0 and at most 1000", "one of COSINE, CONSTANT", ...
/// For a list "[a, b, ...], each an integer from 1 to 4096".
std::string expected(const google::protobuf::FieldDescriptor& field);

/// The same for one value, also where `field` is a list.
std::string expected_value(const google::protobuf::FieldDescriptor& field);

/// Every value a user may give, where the schema can list them: "true" and "false", enum names
/// without the zero that stands for "not said", accepted texts. Empty for numbers and free texts.
std::vector<std::string> value_names(const google::protobuf::FieldDescriptor& field);

/// `path is got: expected ....`, with the nearest name for enums and texts from a fixed list. `got`
/// stands for one value, also where `field` is a list.
std::string wrong_value(std::string_view path, const google::protobuf::FieldDescriptor& field,
                        std::string_view got);

/// `path has no field "name".` with the nearest field, or else the fields there are.
std::string unknown_field(std::string_view path, const google::protobuf::Descriptor& type,
                          std::string_view name);

/// Stores `text`, one value written as in a config file, in the scalar `field` of `message`, or
/// adds it at the end of a list. Texts need no quotes. Returns false, with the field as it was,
/// when the type does not fit; ranges are not looked at.
bool assign(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
            std::string_view text);

/// The value of the set scalar `field` as a config file writes it; "[1, 2]" for a list.
std::string value_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field);

/// What is wrong with the value of the set scalar `field`, or the first wrong value of a list
/// (range, finiteness, power of two, accepted texts, enum numbers without a name); empty if nothing
/// is.
std::string violation(std::string_view path, const google::protobuf::Message& message,
                      const google::protobuf::FieldDescriptor& field);

}  // namespace lockstep::config
