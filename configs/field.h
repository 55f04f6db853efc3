#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
namespace io {
class ErrorCollector;
}
}  // namespace google::protobuf

/// Checks and error texts for fields, derived from the schema (types and the options of
/// configs/options.proto). Works on any message through reflection, so a new field needs no code
/// here. Every function is safe to call from several threads on different messages.
namespace lockstep::config {

/// Joins `parent` and `name`: "optimizer.learning_rate". The root's path is "".
std::string join_path(std::string_view parent, std::string_view name);

/// Whether `field` is a message, so that it has fields.
bool holds_fields(const google::protobuf::FieldDescriptor& field);

/// Whether `field` is a list of messages. Values in one have the paths of value_path and names of
/// their own below them: "data.mixture.source[0].weight".
bool lists_fields(const google::protobuf::FieldDescriptor& field);

/// Path of a value in the list `path`: "model.resnet.blocks[2]".
std::string value_path(std::string_view path, int index);

/// A name in a path, with the index in a list of messages if it has one: "source[0]".
struct PathStep {
  std::string name;
  std::optional<int> index = {};
};
PathStep parse_step(std::string_view text);

/// Describes the values that `field` accepts: "an integer from 1 to 4096", "a number above 0 and at
/// most 1000", "one of COSINE, CONSTANT", ...; for a list "[a, b, ...], each an integer from 1 to
/// 4096".
std::string expected(const google::protobuf::FieldDescriptor& field);

/// Describes the accepted form of a single value, even if `field` is a list.
std::string expected_value(const google::protobuf::FieldDescriptor& field);

/// All accepted values, if the schema can list them: "true" and "false", enum names without the
/// UNSPECIFIED zero, accepted texts. Empty for numbers and free texts.
std::vector<std::string> value_names(const google::protobuf::FieldDescriptor& field);

/// Returns the error text "`path` is `got`: expected ...." with the nearest name for enums and
/// texts from a fixed list. `got` is a single value, even if `field` is a list.
std::string wrong_value(std::string_view path, const google::protobuf::FieldDescriptor& field,
                        std::string_view got);

/// Returns the error text "`path` has no field `name`." with the nearest field name, or else a list
/// of the fields.
std::string unknown_field(std::string_view path, const google::protobuf::Descriptor& type,
                          std::string_view name);

/// Parses `text`, one value written as in a config file, and stores it in the scalar `field` of
/// `message` or appends it to a list. Texts need no quotes. Returns false and leaves the field
/// unchanged if the type does not fit; does not check ranges.
bool assign(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
            std::string_view text);

/// The value of the scalar `field`, which must be set, as in a config file; "[1, 2]" for a list.
std::string value_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field);

/// Checks the value of the scalar `field`, which must be set, or all values of a list: range,
/// finiteness, power of two, accepted texts, enum numbers without a name. Describes the first
/// error; empty if there is none.
std::string violation(std::string_view path, const google::protobuf::Message& message,
                      const google::protobuf::FieldDescriptor& field);

/// Returns a collector that drops what protobuf's parsers report; without one they print to stderr.
google::protobuf::io::ErrorCollector& dropped_errors();

}  // namespace lockstep::config
