#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory/snapshot.h"

namespace lockstep {

/// What the blocks of one origin hold together.
struct MemoryShare {
  std::string name;
  int64_t bytes = 0;
  int64_t blocks = 0;

  friend bool operator==(const MemoryShare&, const MemoryShare&) = default;
};

/// Blocks on loan by the operator that asked for them ("outside operators" where none did), those
/// that hold most first. For CachingAllocator::blocks_at_peak and the blocks of a snapshot.
std::vector<MemoryShare> memory_by_operator(std::span<const BlockInfo> blocks);
/// The same by module ("outside modules").
std::vector<MemoryShare> memory_by_module(std::span<const BlockInfo> blocks);
/// A line for each: bytes, share of them all, blocks, name. What goes beyond `most_rows` is in one
/// last line.
std::string memory_table(std::span<const MemoryShare> shares, size_t most_rows = 20);

}  // namespace lockstep
