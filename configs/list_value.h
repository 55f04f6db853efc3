#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

/// Parsing of lists of scalars written as one text.
namespace lockstep::config {

enum class ListChange { kReplace, kAppend };

/// Splits "[1, 2]", "1, 2" or "1" into values; "[]" has none. Spaces around a value are ignored;
/// commas and brackets inside quotes belong to the value. Returns nothing for an empty text and for
/// an unmatched bracket or quote.
std::optional<std::vector<std::string>> list_values(std::string_view text);

/// Stores the list `text` in the repeated scalar `field` of `message`, or appends it, typed by the
/// schema. Returns "" or, with the field unchanged, a description of the error. Does not check
/// ranges.
std::string assign_list(google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field, std::string_view path,
                        std::string_view text, ListChange change);

}  // namespace lockstep::config
