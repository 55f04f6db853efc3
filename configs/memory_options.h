#pragma once

#include <map>
#include <string>

#include "core/memory/options.h"

namespace lockstep::config {

class MemoryConfig;

/// The allocator's options as `config` sets them; what it does not set is `defaults`'. Throws
/// ConfigError naming the key.
AllocatorOptions allocator_options(const MemoryConfig& config, AllocatorOptions defaults);
/// The values, as after --set, that fields of MemoryConfig have for `options`, by field.
std::map<std::string, std::string> memory_fields(const AllocatorOptions& options);

}  // namespace lockstep::config
