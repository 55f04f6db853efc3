#include "core/memory/size_bins.h"

#include <bit>

namespace lockstep {

size_t SizeBins::bin(size_t bytes) {
  const size_t units = bytes / kChunkUnit;
  if (units < kSubBins) return units;
  const auto shift = static_cast<size_t>(std::bit_width(units)) - 6;
  return (shift + 1) * kSubBins + (units >> shift) % kSubBins;
}

size_t SizeBins::next_filled(size_t bin) const {
  if (bin >= kBins) return kBins;
  uint64_t word = filled_[bin / 64] & (~uint64_t{0} << bin % 64);
  for (size_t i = bin / 64;;) {
    if (word != 0) return i * 64 + static_cast<size_t>(std::countr_zero(word));
    if (++i == filled_.size()) return kBins;
    word = filled_[i];
  }
}

void SizeBins::insert(Chunk* chunk) {
  const size_t at = bin(chunk->size);
  chunk->bin_previous = nullptr;
  chunk->bin_next = first_[at];
  if (first_[at] != nullptr) first_[at]->bin_previous = chunk;
  first_[at] = chunk;
  filled_[at / 64] |= uint64_t{1} << at % 64;
}

void SizeBins::erase(Chunk* chunk) {
  const size_t at = bin(chunk->size);
  (chunk->bin_previous != nullptr ? chunk->bin_previous->bin_next : first_[at]) = chunk->bin_next;
  if (chunk->bin_next != nullptr) chunk->bin_next->bin_previous = chunk->bin_previous;
  if (first_[at] == nullptr) filled_[at / 64] &= ~(uint64_t{1} << at % 64);
}

Chunk* SizeBins::find(size_t bytes) const {
  // Only the bin of `bytes` itself may contain chunks that are too small.
  for (size_t at = next_filled(bin(bytes)); at < kBins; at = next_filled(at + 1)) {
    Chunk* best = nullptr;
    for (Chunk* each = first_[at]; each != nullptr; each = each->bin_next) {
      if (each->size < bytes) continue;
      if (best == nullptr || each->size < best->size ||
          (each->size == best->size && each->address < best->address)) {
        best = each;
      }
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

}  // namespace lockstep
