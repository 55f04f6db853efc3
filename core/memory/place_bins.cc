#include "core/memory/place_bins.h"

#include <algorithm>
#include <bit>

namespace lockstep {

namespace {

// Small enough that few chunks share a bin, even if they are tiny.
constexpr size_t kSmallestBin = 64 * 1024;
constexpr size_t kMostBins = size_t{1} << 20;

}  // namespace

void PlaceBins::reset(uintptr_t begin, size_t bytes, size_t granularity) {
  begin_ = begin;
  granularity_ = granularity;
  bin_shift_ = std::countr_zero(std::max(kSmallestBin, std::bit_ceil(bytes / kMostBins + 1)));
  first_.clear();
  levels_.clear();
  grow(1);
}

PlaceBins::Room PlaceBins::most(const Room& a, const Room& b) {
  return {std::max(a.any, b.any), std::max(a.sparing, b.sparing)};
}

size_t PlaceBins::bin(const Chunk& chunk) const { return (chunk.address - begin_) >> bin_shift_; }

void PlaceBins::grow(size_t bins) {
  const size_t count = std::bit_ceil(std::max(bins, kFanOut));
  first_.resize(count);
  if (levels_.empty()) levels_.emplace_back();
  levels_.resize(1);
  levels_[0].resize(count);
  while (levels_.back().size() > 1) {
    const std::vector<Room>& below = levels_.back();
    std::vector<Room> above((below.size() + kFanOut - 1) / kFanOut);
    for (size_t i = 0; i < below.size(); ++i) {
      above[i / kFanOut] = most(above[i / kFanOut], below[i]);
    }
    levels_.push_back(std::move(above));
  }
}

void PlaceBins::update_above(size_t bin) {
  for (size_t level = 1; level < levels_.size(); ++level) {
    const std::vector<Room>& below = levels_[level - 1];
    bin /= kFanOut;
    Room room;
    const size_t end = std::min((bin + 1) * kFanOut, below.size());
    for (size_t i = bin * kFanOut; i < end; ++i) room = most(room, below[i]);
    if (levels_[level][bin] == room) return;
    levels_[level][bin] = room;
  }
}

void PlaceBins::insert(Chunk* chunk) {
  const size_t at = bin(*chunk);
  if (at >= first_.size()) grow(at + 1);
  chunk->bin_previous = nullptr;
  chunk->bin_next = first_[at];
  if (first_[at] != nullptr) first_[at]->bin_previous = chunk;
  first_[at] = chunk;
  const Room room = most(levels_[0][at], this->room(*chunk));
  if (levels_[0][at] == room) return;
  levels_[0][at] = room;
  update_above(at);
}

void PlaceBins::erase(Chunk* chunk) {
  const size_t at = bin(*chunk);
  (chunk->bin_previous != nullptr ? chunk->bin_previous->bin_next : first_[at]) = chunk->bin_next;
  if (chunk->bin_next != nullptr) chunk->bin_next->bin_previous = chunk->bin_previous;
  const Room had = room(*chunk);
  if (had.any < levels_[0][at].any && had.sparing < levels_[0][at].sparing) return;
  Room left;
  for (const Chunk* each = first_[at]; each != nullptr; each = each->bin_next) {
    left = most(left, room(*each));
  }
  levels_[0][at] = left;
  update_above(at);
}

template <size_t PlaceBins::Room::*Kind>
Chunk* PlaceBins::find_kind(size_t bytes) const {
  if (levels_.empty() || levels_.back()[0].*Kind < bytes) return nullptr;
  size_t at = 0;
  for (size_t level = levels_.size() - 1; level > 0; --level) {
    at *= kFanOut;
    while (levels_[level - 1][at].*Kind < bytes) ++at;
  }
  Chunk* lowest = nullptr;
  for (Chunk* each = first_[at]; each != nullptr; each = each->bin_next) {
    if (room(*each).*Kind >= bytes && (lowest == nullptr || each->address < lowest->address)) {
      lowest = each;
    }
  }
  return lowest;
}

Chunk* PlaceBins::find_highest(size_t bytes) const {
  if (levels_.empty() || levels_.back()[0].any < bytes) return nullptr;
  size_t at = 0;
  for (size_t level = levels_.size() - 1; level > 0; --level) {
    const std::vector<Room>& below = levels_[level - 1];
    at = std::min((at + 1) * kFanOut, below.size()) - 1;
    while (below[at].any < bytes) --at;
  }
  Chunk* highest = nullptr;
  for (Chunk* each = first_[at]; each != nullptr; each = each->bin_next) {
    if (each->size >= bytes && (highest == nullptr || each->address > highest->address)) {
      highest = each;
    }
  }
  return highest;
}

Chunk* PlaceBins::find(size_t bytes, bool sparing) const {
  return sparing ? find_kind<&Room::sparing>(bytes) : find_kind<&Room::any>(bytes);
}

}  // namespace lockstep
