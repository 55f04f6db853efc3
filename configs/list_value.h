#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

/// Lists of scalars, as they are written in one piece.
namespace lockstep::config {

enum class ListChange { kReplace, kAppend };

/// The values of "[1, 2]", "1, 2" or "1"; "[]" holds none. Spaces around a value do not count;
/// commas and brackets inside quotes belong to the text. None for an empty text and for a bracket
/// or quote without its partner.
std::optional<std::vector<std::string>> list_values(std::string_view text);

/// Stores the list `text`, or appends it, in the repeated scalar `field` of `message`, typed by the
/// schema. Returns what is wrong with it, with the field as it was; empty if nothing is. Ranges are
/// not looked at.
std::string assign_list(google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field, std::string_view path,
                        std::string_view text, ListChange change);

}  // namespace lockstep::config
