#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory/chunk.h"

namespace lockstep {

/// Free chunks of one range by address: bins of equal stretches of addresses, and above them a tree
/// of eight children per node that stores the largest room of any chunk below. Finds the lowest
/// chunk that fits in a few steps, whatever the number of chunks.
///
/// Lowest address first has two advantages. The choice depends only on which blocks are live, so a
/// step that repeats gets the same addresses as the step before. And rarely needed memory collects
/// at the end of the range. The highest chunk is for blocks that should stay apart from those.
/// Not thread-safe.
class PlaceBins {
 public:
  /// Resets to an empty range of `bytes` from `begin`, with granules of `granularity` bytes.
  void reset(uintptr_t begin, size_t bytes, size_t granularity);
  void insert(Chunk* chunk);
  /// Removes a chunk; call before its address or size changes.
  void erase(Chunk* chunk);
  /// The lowest chunk of at least `bytes`; null if none. With `sparing`, only chunks whose first
  /// `bytes` bytes overlap no entirely free granule.
  Chunk* find(size_t bytes, bool sparing) const;
  /// The highest chunk of at least `bytes`; null if none.
  Chunk* find_highest(size_t bytes) const;
  /// Whether `find` could return this chunk.
  bool fits(const Chunk& chunk, size_t bytes, bool sparing) const {
    const Room offered = room(chunk);
    return (sparing ? offered.sparing : offered.any) >= bytes;
  }

 private:
  static constexpr size_t kFanOut = 8;

  /// Bytes that a chunk offers: all of it, or as much as breaks no free granule.
  struct Room {
    size_t any = 0;
    size_t sparing = 0;
    bool operator==(const Room&) const = default;
  };

  Room room(const Chunk& chunk) const {
    const uintptr_t whole = (chunk.address + granularity_ - 1) & ~(granularity_ - 1);
    const bool has_whole = whole + granularity_ <= chunk.end();
    return {chunk.size, has_whole ? whole - chunk.address : chunk.size};
  }
  static Room most(const Room& a, const Room& b);
  size_t bin(const Chunk& chunk) const;
  void grow(size_t bins);
  void update_above(size_t bin);
  template <size_t Room::*Kind>
  Chunk* find_kind(size_t bytes) const;

  uintptr_t begin_ = 0;
  size_t granularity_ = 0;
  int bin_shift_ = 0;                      ///< log2 of a bin's bytes
  std::vector<Chunk*> first_;              // first chunk of each bin, in no order
  std::vector<std::vector<Room>> levels_;  // [0]: room in each bin; the last level has one element
};

}  // namespace lockstep
