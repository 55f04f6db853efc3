#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory/snapshot.h"

namespace lockstep {

/// The total of all blocks of one origin.
struct MemoryShare {
  std::string name;
  int64_t bytes = 0;
  int64_t blocks = 0;

  friend bool operator==(const MemoryShare&, const MemoryShare&) = default;
};

/// Sums live blocks by the operator that allocated them ("outside operators" if none did), largest
/// first. For CachingAllocator::blocks_at_peak and the blocks of a snapshot.
std::vector<MemoryShare> memory_by_operator(std::span<const BlockInfo> blocks);
/// Sums live blocks by the module that allocated them ("outside modules" if none did), largest
/// first.
std::vector<MemoryShare> memory_by_module(std::span<const BlockInfo> blocks);
/// A table with one line for each share: bytes, percentage of the total, blocks, name. Shares
/// beyond `most_rows` are summed in a last line.
std::string memory_table(std::span<const MemoryShare> shares, size_t most_rows = 20);

}  // namespace lockstep
