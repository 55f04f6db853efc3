#pragma once

#include <string>
#include <string_view>

#include "configs/load.h"

namespace google::protobuf {
class Message;
}

/// The steps of load (configs/load.h) for a text file of any schema whose fields have the options
/// of configs/options.proto.
namespace lockstep::config {

/// As merge_file and merge_text.
void merge_message_file(google::protobuf::Message& config, Origins& origins,
                        const std::string& path);
void merge_message_text(google::protobuf::Message& config, Origins& origins,
                        const std::string& text, const std::string& name);
/// As set_value; `where` is the origin.
void set_message_value(google::protobuf::Message& config, Origins& origins,
                       std::string_view assignment, const std::string& where);
/// Sets all unset fields with a default to it, and checks required fields and ranges. Throws
/// SourceError.
void resolve_message(google::protobuf::Message& config, Origins& origins);

}  // namespace lockstep::config
