// Granules of a heap's range: where memory is mapped, and which granules could be moved.

#include <algorithm>
#include <utility>

#include "core/memory/heap.h"

namespace lockstep {

namespace {

bool has_no_user(const Chunk* chunk) {
  return chunk->state == ChunkState::kFree || chunk->state == ChunkState::kUnmapped;
}

/// The lowest chunk of the run of free and unmapped chunks around `chunk`; null if an unmapped one
/// lies lower in the run.
const Chunk* begin_of_run(const Chunk* chunk) {
  while (chunk->previous != nullptr && has_no_user(chunk->previous)) {
    chunk = chunk->previous;
    if (chunk->state == ChunkState::kUnmapped) return nullptr;
  }
  return chunk;
}

uintptr_t round_down(uintptr_t at, size_t granularity) { return at & ~(granularity - 1); }
uintptr_t next_granule(uintptr_t at, size_t granularity) {
  return round_down(at + granularity - 1, granularity);
}

/// Number of granules that [begin, end) lacks; `first` is the first chunk of its run.
size_t missing_granules(const Chunk* first, uintptr_t begin, uintptr_t end, size_t granularity) {
  size_t missing = 0;
  for (const Chunk* chunk = first; chunk != nullptr && chunk->address < end; chunk = chunk->next) {
    if (chunk->state != ChunkState::kUnmapped || chunk->end() <= begin) continue;
    const uintptr_t from = round_down(std::max(begin, chunk->address), granularity);
    const uintptr_t to = next_granule(std::min(end, chunk->end()), granularity);
    missing += (to - from) / granularity;
  }
  return missing;
}

}  // namespace

Heap::Place Heap::find_place(size_t size) const {
  // Only a run with an unmapped chunk lacks granules. Live blocks, which may be very many, are not
  // looked at.
  std::vector<const Chunk*> runs;
  for (const Chunk* each = unmapped_; each != nullptr; each = each->bin_next) {
    if (const Chunk* const run = begin_of_run(each)) runs.push_back(run);
  }
  std::ranges::sort(runs, {}, &Chunk::address);
  Place best;
  const auto consider = [&](const Chunk* run, uintptr_t begin) LS_REQUIRES(lock) {
    const size_t missing = missing_granules(run, begin, begin + size, range_->granularity);
    if (missing != 0 && (best.missing == 0 || missing < best.missing)) best = {begin, missing};
  };
  for (const Chunk* const run : runs) {
    const Chunk* chunk = run;
    uintptr_t end = 0;
    for (; chunk != nullptr && has_no_user(chunk); chunk = chunk->next) end = chunk->end();
    if (end - run->address < size) continue;
    // Starting or ending at a free chunk uses as much of the free memory as possible.
    consider(run, run->address);
    for (const Chunk* each = run; each != chunk; each = each->next) {
      if (each->state != ChunkState::kFree) continue;
      if (end - each->address >= size) consider(run, each->address);
      if (each->end() - run->address >= size) consider(run, each->end() - size);
    }
  }
  return best;
}

int64_t Heap::count_mapped_runs() const {
  int64_t runs = 0;
  for (size_t i = 0; i < range_->granules.size(); ++i) {
    runs += range_->is_mapped(i) && (i == 0 || !range_->is_mapped(i - 1)) ? 1 : 0;
  }
  return runs;
}

Chunk* Heap::chunk_at(const Segment& segment, uintptr_t address) {
  Chunk* chunk = segment.first;
  while (chunk != nullptr && chunk->end() <= address) chunk = chunk->next;
  return chunk;
}

Chunk* Heap::unmapped_in(uintptr_t begin, uintptr_t end) const {
  Chunk* chunk = unmapped_;
  while (chunk->address >= end || chunk->end() <= begin) chunk = chunk->bin_next;
  return chunk;
}

Chunk* Heap::hold(Chunk* near, uintptr_t begin, uintptr_t end) {
  Chunk* chunk = near;
  while (chunk->address > begin) chunk = chunk->previous;
  while (chunk->end() <= begin) chunk = chunk->next;
  if (chunk->address < begin) {
    if (chunk->state == ChunkState::kFree) {
      unbin(chunk);
      Chunk* const rest = split(chunk, begin - chunk->address);
      bin(chunk);
      bin(rest);
      chunk = rest;
    } else {
      chunk = split(chunk, begin - chunk->address);
    }
  }
  Chunk* const held = chunk;
  for (;;) {
    if (chunk->state == ChunkState::kFree) unbin(chunk);
    if (chunk->end() > end) {
      Chunk* const rest = split(chunk, end - chunk->address);
      if (rest->state == ChunkState::kFree) bin(rest);
    }
    if (chunk->state == ChunkState::kUnmapped) unlist_unmapped(chunk);
    chunk->state = ChunkState::kHeld;
    if (chunk != held) merge(held, chunk);
    if (held->end() >= end) return held;
    chunk = held->next;
  }
}

std::vector<Chunk*> Heap::hold_granules(size_t count, uintptr_t begin, uintptr_t end) {
  std::vector<Chunk*> held;
  if (range_ == nullptr || count == 0) return held;
  join_waiting();
  const size_t granularity = range_->granularity;
  Chunk* chunk = range_->last;
  while (chunk != nullptr && count > 0) {
    Chunk* const previous = chunk->previous;
    if (chunk->state == ChunkState::kFree) {
      // The parts of the chunk above and below [begin, end).
      const std::pair<uintptr_t, uintptr_t> parts[] = {
          {std::max(chunk->address, end), chunk->end()},
          {chunk->address, std::min(chunk->end(), begin)}};
      const bool apart = chunk->end() <= begin || end <= chunk->address;
      for (const auto& [from, to] : parts) {
        const uintptr_t last = round_down(to, granularity);
        uintptr_t first = next_granule(from, granularity);
        if (first >= last || count == 0) continue;
        first = std::max(first, last - std::min(count, (last - first) / granularity) * granularity);
        count -= (last - first) / granularity;
        held.push_back(hold(chunk, first, last));
        if (apart) break;
      }
    }
    chunk = previous;
  }
  return held;
}

void Heap::list_unmapped(Chunk* chunk) noexcept {
  chunk->state = ChunkState::kUnmapped;
  chunk->bin_previous = nullptr;
  chunk->bin_next = std::exchange(unmapped_, chunk);
  if (chunk->bin_next != nullptr) chunk->bin_next->bin_previous = chunk;
}

void Heap::unlist_unmapped(Chunk* chunk) noexcept {
  if (chunk->bin_next != nullptr) chunk->bin_next->bin_previous = chunk->bin_previous;
  (chunk->bin_previous != nullptr ? chunk->bin_previous->bin_next : unmapped_) = chunk->bin_next;
}

void Heap::set_unmapped(Chunk* chunk) noexcept {
  list_unmapped(chunk);
  if (chunk->next != nullptr && chunk->next->state == ChunkState::kUnmapped) {
    merge(chunk, chunk->next);
  }
  if (chunk->previous != nullptr && chunk->previous->state == ChunkState::kUnmapped) {
    merge(chunk->previous, chunk);
  }
}

void Heap::settle(Chunk* chunk) noexcept {
  const Segment& segment = *chunk->segment;
  while (chunk != nullptr) {
    const bool mapped = segment.is_mapped(segment.granule_of(chunk->address));
    size_t limit = segment.granule_of(chunk->address) + 1;
    while (segment.address + limit * segment.granularity < chunk->end() &&
           segment.is_mapped(limit) == mapped) {
      ++limit;
    }
    const uintptr_t end = segment.address + limit * segment.granularity;
    Chunk* const rest = end < chunk->end() ? split(chunk, end - chunk->address) : nullptr;
    mapped ? join(chunk) : set_unmapped(chunk);
    chunk = rest;
  }
}

}  // namespace lockstep
