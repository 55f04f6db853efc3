#pragma once

#include <string>
#include <string_view>

#include "configs/load.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

/// Queries and updates of Origins, the record of where each value of a config was set.
namespace lockstep::config {

/// Origin of values that nothing set.
inline constexpr const char* kDefaultOrigin = "default";
/// How the origin begins of what nothing set and other values decided; the reason follows.
inline constexpr const char* kChosenOrigin = "chosen: ";
/// Whether somebody wrote what has this origin.
bool is_written(std::string_view origin);

/// Throws SourceError with the origin of `path`, else that of the nearest enclosing message that
/// was set, else the last file.
[[noreturn]] void fail(const Origins& origins, std::string path, std::string problem);

/// Whether `field` of `message`, at `path`, was set. Needed for lists, which can be set but empty:
/// the message alone cannot distinguish these from unset ones.
bool is_set(const google::protobuf::Message& message,
            const google::protobuf::FieldDescriptor& field, const std::string& path,
            const Origins& origins);

/// Removes the origins of all fields in messages that `config` no longer has because another member
/// of a oneof was chosen.
void forget_dropped(const google::protobuf::Message& config, Origins& origins);

}  // namespace lockstep::config
