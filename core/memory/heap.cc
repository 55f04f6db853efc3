#include "core/memory/heap.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/memory/units.h"

namespace lockstep {

namespace {

bool is_free(const Chunk* chunk) { return chunk != nullptr && chunk->state == ChunkState::kFree; }

}  // namespace

Heap::~Heap() = default;

Chunk* Heap::new_record() {
  if (spare_ == nullptr) spare_ = table_.make(this);
  return std::exchange(spare_, spare_->bin_next);
}

void Heap::drop_record(Chunk* chunk) noexcept {
  chunk->state = ChunkState::kSpare;
  chunk->bin_next = std::exchange(spare_, chunk);
}

void Heap::bin(Chunk* chunk) noexcept {
  chunk->state = ChunkState::kFree;
  chunk->freed_at = searches;
  if (chunk->segment->is_range()) {
    if (loose_ != nullptr) places_.insert(loose_);
    loose_ = chunk;
  } else {
    plain_[chunk->segment->small ? 0 : 1]->insert(chunk);
  }
}

void Heap::unbin(Chunk* chunk) noexcept {
  if (chunk == loose_) {
    loose_ = nullptr;
  } else if (chunk->segment->is_range()) {
    places_.erase(chunk);
  } else {
    plain_[chunk->segment->small ? 0 : 1]->erase(chunk);
  }
}

void Heap::merge(Chunk* left, Chunk* right) noexcept {
  if (right->state == ChunkState::kUnmapped) unlist_unmapped(right);
  left->size += right->size;
  left->next = right->next;
  (left->next != nullptr ? left->next->previous : left->segment->last) = left;
  drop_record(right);
}

Chunk* Heap::split(Chunk* chunk, size_t size) {
  Chunk* const rest = new_record();
  rest->address = chunk->address + size;
  rest->size = chunk->size - size;
  rest->state = chunk->state;
  rest->segment = chunk->segment;
  rest->previous = chunk;
  rest->next = chunk->next;
  (rest->next != nullptr ? rest->next->previous : rest->segment->last) = rest;
  chunk->next = rest;
  chunk->size = size;
  if (rest->state == ChunkState::kUnmapped) list_unmapped(rest);
  return rest;
}

void Heap::join(Chunk* chunk) noexcept {
  if (is_free(chunk->next)) {
    unbin(chunk->next);
    merge(chunk, chunk->next);
  }
  if (is_free(chunk->previous)) {
    Chunk* const left = chunk->previous;
    unbin(left);
    merge(left, chunk);
    chunk = left;
  }
  bin(chunk);
}

void Heap::join_waiting() noexcept {
  const size_t words = (kLargestWaiting >> unit_bits_) / 64 + 1;
  for (size_t word = 0; word < words; ++word) {
    while (has_waiting_[word] != 0) {
      const auto bit = static_cast<size_t>(std::countr_zero(has_waiting_[word]));
      has_waiting_[word] &= has_waiting_[word] - 1;
      Chunk* chunk = std::exchange(waiting_[word * 64 + bit], nullptr);
      while (chunk != nullptr) {
        Chunk* const next = chunk->bin_next;
        join(chunk);
        chunk = next;
      }
    }
  }
}

Chunk* Heap::take(size_t size, bool small, const AllocatorOptions& options) {
  if (size <= kLargestWaiting) {
    if (Chunk* const chunk = take_waiting(size)) return chunk;
  }
  ++searches;
  join_waiting();
  Chunk* chunk = options.expandable_segments ? take_from_range(size, small)
                                             : take_from_plain(size, small, options);
  // Fall back to memory cached in the other form, before the option changed.
  if (chunk == nullptr) {
    chunk = options.expandable_segments ? take_from_plain(size, small, options)
                                        : take_from_range(size, small);
  }
  return chunk;
}

Chunk* Heap::find_in_range(size_t size, bool sparing) const {
  Chunk* const chunk = places_.find(size, sparing);
  const bool is_loose = loose_ != nullptr && places_.fits(*loose_, size, sparing) &&
                        (chunk == nullptr || loose_->address < chunk->address);
  return is_loose ? loose_ : chunk;
}

Chunk* Heap::find_highest_in_range(size_t size) const {
  Chunk* const chunk = places_.find_highest(size);
  const bool is_loose = loose_ != nullptr && loose_->size >= size &&
                        (chunk == nullptr || loose_->address > chunk->address);
  return is_loose ? loose_ : chunk;
}

Chunk* Heap::take_highest_from_range(size_t size) {
  Chunk* chunk = find_highest_in_range(size);
  if (chunk == nullptr) return nullptr;
  unbin(chunk);
  if (is_at_end(chunk)) {
    // How much is free above all blocks depends on what the range was grown for. If it were used
    // first, a step that repeats would place its blocks differently after the range has grown.
    Chunk* const hole = find_highest_in_range(size);
    if (hole == nullptr) {
      if (chunk->size > size) bin(split(chunk, size));
      return chunk;
    }
    unbin(hole);
    bin(chunk);
    chunk = hole;
  }
  if (chunk->size == size) return chunk;
  Chunk* const block = split(chunk, chunk->size - size);
  bin(chunk);
  return block;
}

Chunk* Heap::take_from_range(size_t size, bool small) {
  if (range_ == nullptr) return nullptr;
  if (trend_.is_falling(counts.requested())) return take_highest_from_range(size);
  // An entirely free granule can be moved to serve a large request anywhere. So small requests
  // first look for room that breaks none; but not at the end of the range, which would extend it.
  Chunk* chunk = small ? find_in_range(size, /*sparing=*/true) : nullptr;
  if (chunk == nullptr || is_at_end(chunk)) chunk = find_in_range(size, /*sparing=*/false);
  if (chunk == nullptr) return nullptr;
  unbin(chunk);
  if (chunk->size > size) bin(split(chunk, size));
  return chunk;
}

bool Heap::is_at_end(const Chunk* chunk) {
  return chunk->next == nullptr ||
         (chunk->next->state == ChunkState::kUnmapped && chunk->next->next == nullptr);
}

Chunk* Heap::take_from_plain(size_t size, bool small, const AllocatorOptions& options) {
  SizeBins* const bins = plain_[small ? 0 : 1].get();
  if (bins == nullptr) return nullptr;
  Chunk* const chunk = bins->find(size);
  if (chunk == nullptr) return nullptr;
  if (!small) {
    if (size < options.max_split_size && chunk->size >= options.max_split_size) return nullptr;
    if (size >= options.max_split_size && chunk->size >= size + options.large_segment_size) {
      return nullptr;
    }
  }
  unbin(chunk);
  if (splits(chunk->size - size, size, small, options)) bin(split(chunk, size));
  return chunk;
}

bool Heap::splits(size_t rest, size_t size, bool small, const AllocatorOptions& options) {
  return small ? rest >= kChunkUnit : size < options.max_split_size && rest > kMiB;
}

Chunk* Heap::take_at(const Segment& segment, uintptr_t address, size_t size) {
  Chunk* chunk = chunk_at(segment, address);
  if (!is_free(chunk) || chunk->end() < address + size) return nullptr;
  unbin(chunk);
  if (chunk->address < address) {
    Chunk* const rest = split(chunk, address - chunk->address);
    bin(chunk);
    chunk = rest;
  }
  if (chunk->size > size) bin(split(chunk, size));
  return chunk;
}

void Heap::replace_front(Chunk* chunk, Chunk* front) {
  front->previous = chunk->previous;
  front->next = chunk;
  (front->previous != nullptr ? front->previous->next : front->segment->first) = front;
  chunk->previous = front;
  chunk->address += front->size;
  chunk->size -= front->size;
  if (chunk->size != 0) return;
  front->next = chunk->next;
  (front->next != nullptr ? front->next->previous : front->segment->last) = front;
}

Segment& Heap::add_segment(Segment segment, ChunkState state) {
  segment.heap = this;
  Segment& added = *segments_.emplace_back(std::make_unique<Segment>(std::move(segment)));
  if (added.is_range()) {
    range_ = &added;
    places_.reset(added.address, added.size, added.granularity);
  } else if (auto& bins = plain_[added.small ? 0 : 1]; bins == nullptr) {
    bins = std::make_unique<SizeBins>();
  }
  Chunk* const chunk = new_record();
  chunk->address = added.address;
  chunk->size = added.size;
  chunk->state = state;
  chunk->segment = &added;
  chunk->previous = chunk->next = nullptr;
  if (state == ChunkState::kUnmapped) list_unmapped(chunk);
  added.first = added.last = chunk;
  return added;
}

void Heap::remove_segment(Segment* segment) {
  if (segment->first->state == ChunkState::kUnmapped) unlist_unmapped(segment->first);
  drop_record(segment->first);
  if (segment == range_) range_ = nullptr;
  std::erase_if(segments_, [&](const auto& each) { return each.get() == segment; });
}

std::vector<Chunk*> Heap::hold_free_segments(size_t bytes, size_t at_least) {
  join_waiting();
  std::vector<Chunk*> found;
  for (const auto& segment : segments_) {
    Chunk* const chunk = segment->first;
    if (!segment->is_range() && chunk->is_whole_segment() && is_free(chunk) &&
        chunk->size >= at_least) {
      found.push_back(chunk);
    }
  }
  std::ranges::stable_sort(found, std::greater{}, &Chunk::size);
  size_t held = 0;
  size_t count = 0;
  while (count < found.size() && held < bytes) {
    unbin(found[count]);
    found[count]->state = ChunkState::kHeld;
    held += found[count++]->size;
  }
  found.resize(count);
  return found;
}

Heap::Splits Heap::count_splits() const {
  Splits splits;
  for (const auto& segment : segments_) {
    if (segment->is_range()) continue;
    for (const Chunk* chunk = segment->first; chunk != nullptr; chunk = chunk->next) {
      const bool free = chunk->state == ChunkState::kFree || chunk->state == ChunkState::kWaiting;
      if (!free || chunk->is_whole_segment()) continue;
      ++splits.blocks;
      splits.bytes += static_cast<int64_t>(chunk->size);
    }
  }
  return splits;
}

}  // namespace lockstep
