#pragma once

#include <map>
#include <string>

#include "core/memory/options.h"

namespace lockstep::config {

class MemoryConfig;

/// Returns the allocator's options: those set in `config`, the others from `defaults`. Throws
/// ConfigError naming the key.
AllocatorOptions allocator_options(const MemoryConfig& config, AllocatorOptions defaults);
/// Inverse of allocator_options: the values of MemoryConfig's fields for `options`, as text for
/// --set, by field name.
std::map<std::string, std::string> memory_fields(const AllocatorOptions& options);

}  // namespace lockstep::config
