#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>

#include "core/memory/place_bins.h"
#include "core/memory/size_bins.h"

namespace lockstep {
namespace {

constexpr size_t kGranule = size_t{2} << 20;

/// Disjoint chunks with sizes (512 bytes to some MiB) and gaps taken from `numbers`.
std::deque<Chunk> chunks_of(const std::vector<std::pair<uint16_t, uint8_t>>& numbers) {
  std::deque<Chunk> chunks;
  uintptr_t at = kGranule;
  for (const auto& [size, gap] : numbers) {
    at += (gap % 4) * size_t{100} * kChunkUnit;
    Chunk& chunk = chunks.emplace_back();
    chunk.address = at;
    chunk.size = (size % 8 == 0 ? size / 8 + 1 : size % 300 + 1) * kChunkUnit;
    at += chunk.size;
  }
  return chunks;
}

using Numbers = std::vector<std::pair<uint16_t, uint8_t>>;
using Calls = std::vector<std::pair<uint8_t, uint16_t>>;

/// Bytes that can be taken from a chunk without using a granule that is wholly free.
size_t sparing_room(const Chunk& chunk) {
  const uintptr_t whole = (chunk.address + kGranule - 1) / kGranule * kGranule;
  return whole + kGranule <= chunk.end() ? whole - chunk.address : chunk.size;
}

RC_GTEST_PROP(PlaceBins, FindTheLowestChunkThatFits, (const Numbers& numbers, const Calls& calls)) {
  std::deque<Chunk> chunks = chunks_of(numbers);
  RC_PRE(!chunks.empty());
  PlaceBins bins;
  bins.reset(kGranule, size_t{1} << 36, kGranule);
  std::vector<bool> inside(chunks.size(), false);
  for (const auto& [choice, number] : calls) {
    const size_t at = number % chunks.size();
    inside[at] ? bins.erase(&chunks[at]) : bins.insert(&chunks[at]);
    inside[at] = !inside[at];
    const size_t bytes = (choice % 2 == 0 ? choice / 2 + 1u : number / 8 + 1u) * kChunkUnit;
    for (const bool sparing : {false, true}) {
      const Chunk* expected = nullptr;
      for (size_t i = 0; i < chunks.size() && expected == nullptr; ++i) {
        const size_t room = sparing ? sparing_room(chunks[i]) : chunks[i].size;
        if (inside[i] && room >= bytes) expected = &chunks[i];
      }
      RC_ASSERT(bins.find(bytes, sparing) == expected);
      for (const Chunk& chunk : chunks) {
        const size_t room = sparing ? sparing_room(chunk) : chunk.size;
        RC_ASSERT(bins.fits(chunk, bytes, sparing) == (room >= bytes));
      }
    }
    const Chunk* highest = nullptr;
    for (size_t i = chunks.size(); i-- > 0 && highest == nullptr;) {
      if (inside[i] && chunks[i].size >= bytes) highest = &chunks[i];
    }
    RC_ASSERT(bins.find_highest(bytes) == highest);
  }
}

RC_GTEST_PROP(SizeBins, FindTheSmallestChunkThatFits,
              (const Numbers& numbers, const Calls& calls)) {
  std::deque<Chunk> chunks = chunks_of(numbers);
  RC_PRE(!chunks.empty());
  SizeBins bins;
  std::vector<bool> inside(chunks.size(), false);
  for (const auto& [choice, number] : calls) {
    const size_t at = number % chunks.size();
    inside[at] ? bins.erase(&chunks[at]) : bins.insert(&chunks[at]);
    inside[at] = !inside[at];
    const size_t bytes = (choice % 2 == 0 ? choice / 2 + 1u : number / 8 + 1u) * kChunkUnit;
    const Chunk* expected = nullptr;
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (!inside[i] || chunks[i].size < bytes) continue;
      if (expected == nullptr || chunks[i].size < expected->size) expected = &chunks[i];
    }
    RC_ASSERT(bins.find(bytes) == expected);
  }
}

}  // namespace
}  // namespace lockstep
