#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/memory/chunk.h"

namespace lockstep {

/// Free chunks by size, for best fit: 32 bins between powers of two, with a bit for each bin that
/// has chunks (Masmano et al. 2004, "TLSF"). Not thread-safe.
class SizeBins {
 public:
  void insert(Chunk* chunk);
  void erase(Chunk* chunk);
  /// The smallest chunk of at least `bytes`, of equal ones the lowest; null if none.
  Chunk* find(size_t bytes) const;

 private:
  static constexpr size_t kSubBins = 32;
  static constexpr size_t kBins = 64 * kSubBins;

  static size_t bin(size_t bytes);
  size_t next_filled(size_t bin) const;

  std::array<Chunk*, kBins> first_{};
  std::array<uint64_t, kBins / 64> filled_{};
};

}  // namespace lockstep
