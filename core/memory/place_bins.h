#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory/chunk.h"

namespace lockstep {

/// Free chunks of one range by where they lie: bins of equal stretches of addresses, and above them
/// a tree of eight children per node that knows the most room that any chunk below offers. Gives
/// the lowest chunk that fits, in a few steps whatever the number of chunks.
///
/// Lowest address first has two virtues: the next free place depends on what is on loan alone, so
/// that a step that repeats finds the places of the step before; and what is seldom needed gathers
/// at the end. Not thread-safe.
class PlaceBins {
 public:
  /// For a range of `bytes` from `begin`, with granules of `granularity`.
  void reset(uintptr_t begin, size_t bytes, size_t granularity);
  void insert(Chunk* chunk);
  /// Before its address or size changes.
  void erase(Chunk* chunk);
  /// The lowest chunk of at least `bytes`; null if none. `sparing`: only chunks whose first `bytes`
  /// are no part of a granule that is free altogether.
  Chunk* find(size_t bytes, bool sparing) const;
  /// Whether `find` might give this chunk.
  bool fits(const Chunk& chunk, size_t bytes, bool sparing) const {
    const Room offered = room(chunk);
    return (sparing ? offered.sparing : offered.any) >= bytes;
  }

 private:
  static constexpr size_t kFanOut = 8;

  /// The most that one chunk offers: all of it, or as much as breaks no free granule.
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
  std::vector<Chunk*> first_;              // of each bin, in no order
  std::vector<std::vector<Room>> levels_;  // [0]: of each bin; the last has one element
};

}  // namespace lockstep
