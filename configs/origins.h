#pragma once

#include <string>
#include <string_view>

#include "configs/load.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

/// Questions to, and changes of, the record of where a config was written.
namespace lockstep::config {

/// The origin of what nothing set.
inline constexpr const char* kDefaultOrigin = "default";

/// Throws SourceError with the place that set `path`, else the nearest message around it that
/// somebody wrote, else the last file.
[[noreturn]] void fail(const Origins& origins, std::string path, std::string problem);

/// Whether `field` of `message`, at `path`, was set. A list may be set and empty, which the message
/// alone cannot tell from one that nobody wrote.
bool is_set(const google::protobuf::Message& message,
            const google::protobuf::FieldDescriptor& field, const std::string& path,
            const Origins& origins);

/// Removes the origins of everything inside messages that `config` has no longer, because another
/// member of a oneof was chosen.
void forget_dropped(const google::protobuf::Message& config, Origins& origins);

}  // namespace lockstep::config
