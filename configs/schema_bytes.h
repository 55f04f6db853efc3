#pragma once

#include <string_view>

namespace lockstep::config {

/// The schema of configs as a serialised google.protobuf.FileDescriptorSet, with the comments of
/// the .proto files, which the descriptors of generated code lack. Made by the build.
std::string_view schema_bytes();

}  // namespace lockstep::config
