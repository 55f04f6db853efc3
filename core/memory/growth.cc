// Obtains memory from the driver and returns it.

#include <algorithm>

#include "core/memory/allocator_state.h"
#include "core/memory/units.h"

namespace lockstep {

namespace {

constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kMiddleSized = 10 * kMiB;  // from here on, as large as requested
constexpr size_t kSegmentUnit = 2 * kMiB;

}  // namespace

size_t CachingAllocator::State::budget() const {
  const double fraction = options.current().per_process_memory_fraction;
  const size_t total = memory.total();
  return fraction == 1 ? total : static_cast<size_t>(fraction * static_cast<double>(total));
}

bool CachingAllocator::State::charge(size_t bytes) noexcept {
  const auto limit = static_cast<int64_t>(std::min(budget(), size_t{INT64_MAX}));
  int64_t held = charged.load();
  do {
    if (static_cast<int64_t>(bytes) > limit - held) return false;
  } while (!charged.compare_exchange_weak(held, held + static_cast<int64_t>(bytes)));
  return true;
}

void CachingAllocator::State::note_segment(TraceEntry::Action action, uintptr_t address,
                                           size_t size, const Stream& stream) {
  if ((watches.load(std::memory_order_relaxed) & kWatchHistory) == 0) return;
  history.add(action, address, size, stream);
}

void CachingAllocator::State::note_reserved(Heap& heap, int64_t bytes) {
  heap.reserved += bytes;
  if (bytes != 0) counts.add_reserved(bytes, /*small=*/false);
  const int64_t runs = heap.count_mapped_runs();
  const int64_t change = runs - std::exchange(heap.mapped_runs, runs);
  if (change != 0) counts.add_segments(change, /*small=*/false);
}

bool CachingAllocator::State::ensure_range(Heap& heap, size_t size) {
  if (heap.range() != nullptr) return true;
  const size_t granularity = memory.granularity();
  // Twice the memory: then a block of any size fits above the highest live block, wherever the live
  // blocks lie in the lower half.
  const size_t wanted = std::min(2 * std::min(memory.total(), kLargestRange), kLargestRange);
  for (size_t bytes = round_up(wanted + granularity, granularity); bytes >= size;
       bytes = round_up(bytes / 2, granularity)) {
    ++rare.other_driver_calls;
    if (void* const address = memory.reserve(bytes)) {
      heap.add_segment({.address = reinterpret_cast<uintptr_t>(address),
                        .size = bytes,
                        .granularity = granularity},
                       ChunkState::kUnmapped);
      return true;
    }
    if (bytes == granularity) break;
  }
  return false;
}

Chunk* CachingAllocator::State::grow(const Request& request, HeapLock& lock, Growth how) {
  // The granule table of a range for such a request would be too large; only `meta` can serve it.
  const bool wants_range = request.options.expandable_segments && memory.granularity() != 0 &&
                           request.size <= kLargestRange / 2;
  if (wants_range && ensure_range(request.heap, request.size)) {
    // By bytes, not by what is done: which addresses are free depends on calls alone then. So much
    // has been moved since the oldest ones that the wait for their work is short.
    unmap_leaving(request.heap, lock, request.heap.reserved);
    Heap::Place place = request.heap.find_place(request.size);
    if (place.missing == 0 && !request.heap.leaving.empty()) {
      unmap_leaving(request.heap, lock, 0);
      place = request.heap.find_place(request.size);
    }
    if (place.missing != 0) return grow_range(request, lock, how, place);
  }
  return grow_plain(request, lock, how);
}

size_t CachingAllocator::State::granules_to_move(const Request& request, Growth how,
                                                 size_t missing) const {
  const Heap& heap = request.heap;
  heap.lock.assert_held();
  if (heap.keeps_layout) return 0;
  if (how == Growth::kMoveFirst) return missing;
  const auto granularity = static_cast<double>(memory.granularity());
  const auto live = static_cast<double>(std::max(
      heap.counts.most_requested(), heap.counts.requested() + static_cast<int64_t>(request.bytes)));
  const auto reserved = static_cast<double>(heap.reserved);
  const double wanted = reserved + static_cast<double>(missing) * granularity;
  // Moving granules costs more than memory if it goes on for ever. So the longer it goes on while
  // the live bytes do not grow, the higher the limit: from 5 % and 4 MiB above them to none. Where
  // granules are larger, the last one alone is more than that.
  const double ratio = request.options.reserve_ratio;
  const double spare = std::max(2.0 * kMiB, granularity);
  double limit = ratio * live + spare;
  const double moved = static_cast<double>(heap.moved_since_growth) * granularity;
  if (moved > reserved / 2) limit = std::max(ratio, 1.05) * live + 2 * spare;
  if (moved > 8 * reserved) return 0;
  if (wanted <= limit) return 0;
  const double above = (wanted - limit) / granularity;
  return std::min(missing, static_cast<size_t>(above) + 1);
}

bool CachingAllocator::State::map_runs(Segment& range,
                                       const std::vector<std::pair<size_t, size_t>>& runs,
                                       std::span<const Granule> granules) noexcept {
  const auto address = [&](size_t index) {
    return reinterpret_cast<void*>(range.address + index * range.granularity);
  };
  size_t used = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& [first, count] = runs[i];
    ++rare.driver_allocations;
    if (!memory.map(address(first), granules.subspan(used, count))) {
      while (i-- > 0) {
        ++rare.driver_frees;
        memory.unmap(address(runs[i].first), runs[i].second * range.granularity);
      }
      return false;
    }
    used += count;
  }
  return true;
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
Chunk* CachingAllocator::State::grow_range(const Request& request, HeapLock& lock, Growth how,
                                           const Heap::Place& place) LS_NO_THREAD_SAFETY_ANALYSIS {
  Heap& heap = request.heap;
  Segment& range = *heap.range();
  const size_t granularity = range.granularity;

  // Hold whole granules where memory is missing, and only the block itself elsewhere.
  const uintptr_t end = place.address + request.size;
  const size_t first = range.granule_of(place.address);
  const size_t last = range.granule_of(end - 1);
  const uintptr_t hold_begin =
      range.is_mapped(first) ? place.address : range.address + first * granularity;
  const uintptr_t hold_end = range.is_mapped(last) ? end : range.address + (last + 1) * granularity;
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t i = first; i <= last; ++i) {
    if (range.is_mapped(i)) continue;
    if (!runs.empty() && runs.back().first + runs.back().second == i) {
      ++runs.back().second;
    } else {
      runs.emplace_back(i, 1);
    }
  }

  const size_t to_move = granules_to_move(request, how, place.missing);
  std::vector<Chunk*> emptied = heap.hold_granules(to_move, hold_begin, hold_end);
  std::vector<Granule> granules;
  for (const Chunk* chunk : emptied) {
    for (size_t i = 0; i < chunk->size / granularity; ++i) {
      granules.push_back(range.granules[range.granule_of(chunk->address) + i]);
    }
  }
  const size_t moved = granules.size();
  granules.resize(place.missing);
  Chunk* const held = heap.hold(heap.unmapped_in(hold_begin, hold_end), hold_begin, hold_end);
  range.granules.resize(std::max(range.granules.size(), last + 1));
  lock.unlock();

  const std::span<Granule> fresh = std::span(granules).subspan(moved);
  bool created = fresh.empty();
  if (!created && charge(fresh.size() * granularity)) {
    ++rare.driver_allocations;
    created = memory.create(fresh);
    if (!created) discharge(fresh.size() * granularity);
  }
  bool mapped = false;
  // Where granules stay mapped at their old addresses meanwhile, nobody waits for their work.
  const bool twice = moved > 0 && memory.maps_twice();
  std::optional<Event> after;
  if (created) {
    if (moved > 0 && !twice) {
      wait_for(heap.stream, "memory that it used is moved");
      unmap_emptied(emptied, heap.stream);
    }
    mapped = map_runs(range, runs, granules);
    if (!mapped) {
      const std::span<const Granule> lost = twice ? fresh : std::span(granules);
      ++rare.driver_frees;
      memory.destroy(lost);
      discharge(lost.size() * granularity);
    } else if (twice) {
      after = leave_mapped(emptied, heap.stream);
    }
  }

  lock.lock();
  if (created && (mapped || !twice)) {
    for (const Chunk* chunk : emptied) {
      const size_t begin = range.granule_of(chunk->address);
      std::fill_n(range.granules.begin() + static_cast<std::ptrdiff_t>(begin),
                  chunk->size / granularity, Granule{0});
    }
  }
  if (after) {
    for (Chunk* chunk : emptied) chunk->state = ChunkState::kLeaving;
    heap.leaving_bytes += static_cast<int64_t>(moved * granularity);
    heap.leaving.push_back({std::move(emptied), *std::move(after)});
  } else {
    for (Chunk* chunk : emptied) heap.settle(chunk);
  }
  if (!mapped) {
    heap.settle(held);
    if (created && !twice) note_reserved(heap, -static_cast<int64_t>(moved * granularity));
    return nullptr;
  }
  size_t used = 0;
  for (const auto& [begin, count] : runs) {
    std::copy_n(granules.begin() + static_cast<std::ptrdiff_t>(used), count,
                range.granules.begin() + static_cast<std::ptrdiff_t>(begin));
    used += count;
    note_segment(TraceEntry::Action::kSegmentMap, range.address + begin * granularity,
                 count * granularity, heap.stream);
  }
  const auto grown = static_cast<int64_t>(fresh.size() * granularity);
  note_reserved(heap, grown);
  if (moved > 0) ++rare.stitched;
  heap.moved_since_growth = grown > 0 ? 0 : heap.moved_since_growth + static_cast<int64_t>(moved);

  // The granules may extend beyond the block on both sides; free these parts.
  Chunk* chunk = held;
  if (place.address > chunk->address) {
    Chunk* const block = heap.split(chunk, place.address - chunk->address);
    heap.join(chunk);
    chunk = block;
  }
  if (chunk->size > request.size) heap.join(heap.split(chunk, request.size));
  return chunk;
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
Chunk* CachingAllocator::State::grow_plain(const Request& request, HeapLock& lock,
                                           Growth how) LS_NO_THREAD_SAFETY_ANALYSIS {
  Heap& heap = request.heap;
  const size_t least = request.small ? kSmallSegment : round_up(request.size, kSegmentUnit);
  size_t bytes = least;
  if (!request.small && request.size < kMiddleSized) {
    bytes = std::max(least, round_up(request.options.large_segment_size, kSegmentUnit));
  }
  lock.unlock();
  const auto take = [&](size_t wanted) -> void* {
    if (!charge(wanted)) return nullptr;
    ++rare.driver_allocations;
    void* const address = memory.allocate(wanted);
    if (address == nullptr) discharge(wanted);
    return address;
  };
  void* address = take(bytes);
  if (address == nullptr && how == Growth::kMoveFirst && bytes > least) {
    address = take(bytes = least);  // retry without spare room
  }
  lock.lock();
  if (address == nullptr) return nullptr;
  counts.add_reserved(static_cast<int64_t>(bytes), request.small);
  counts.add_segments(1, request.small);
  Chunk* const chunk = heap.add_segment({.address = reinterpret_cast<uintptr_t>(address),
                                         .size = bytes,
                                         .small = request.small},
                                        ChunkState::kHeld)
                           .first;
  note_segment(TraceEntry::Action::kSegmentAlloc, chunk->address, bytes, heap.stream);
  if (heap.splits(bytes - request.size, request.size, request.small, request.options)) {
    heap.join(heap.split(chunk, request.size));
  }
  return chunk;
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
size_t CachingAllocator::State::release_segments(
    Heap& heap, HeapLock& lock, const std::vector<Chunk*>& chunks) LS_NO_THREAD_SAFETY_ANALYSIS {
  if (chunks.empty()) return 0;
  const Stream stream = heap.stream;  // the heap's stream may be destroyed meanwhile
  lock.unlock();
  wait_for(stream, "memory that it used goes back");
  size_t released = 0;
  for (const Chunk* chunk : chunks) {
    ++rare.driver_frees;
    open(chunk->address, chunk->size);
    memory.release(reinterpret_cast<void*>(chunk->address), chunk->size);
    discharge(chunk->size);
    released += chunk->size;
    note_segment(TraceEntry::Action::kSegmentFree, chunk->address, chunk->size, stream);
  }
  lock.lock();
  for (const Chunk* chunk : chunks) {
    counts.add_reserved(-static_cast<int64_t>(chunk->size), chunk->segment->small);
    counts.add_segments(-1, chunk->segment->small);
    heap.remove_segment(chunk->segment);
  }
  return released;
}

// Not analysed: `lock` is the lock of the heap, which the analysis does not know.
size_t CachingAllocator::State::release_cached(Heap& heap, HeapLock& lock,
                                               size_t bytes) LS_NO_THREAD_SAFETY_ANALYSIS {
  size_t released = release_segments(heap, lock, heap.hold_free_segments(bytes));
  if (heap.range() == nullptr || released >= bytes) return released;
  unmap_leaving(heap, lock, 0);  // a granule goes back once it is mapped nowhere
  Segment& range = *heap.range();
  const size_t granularity = range.granularity;
  const size_t wanted = std::min(bytes - released, range.size);
  const std::vector<Chunk*> emptied =
      heap.hold_granules(round_up(wanted, granularity) / granularity, 0, 0);
  if (emptied.empty()) return released;
  std::vector<Granule> granules;
  for (const Chunk* chunk : emptied) {
    const auto begin =
        range.granules.begin() + static_cast<std::ptrdiff_t>(range.granule_of(chunk->address));
    granules.insert(granules.end(), begin,
                    begin + static_cast<std::ptrdiff_t>(chunk->size / granularity));
  }
  const Stream stream = heap.stream;  // the heap's stream may be destroyed meanwhile
  lock.unlock();
  wait_for(stream, "memory that it used goes back");
  unmap_emptied(emptied, stream);
  ++rare.driver_frees;
  memory.destroy(granules);
  const size_t freed = granules.size() * granularity;
  discharge(freed);
  lock.lock();
  for (Chunk* chunk : emptied) {
    const size_t begin = range.granule_of(chunk->address);
    std::fill_n(range.granules.begin() + static_cast<std::ptrdiff_t>(begin),
                chunk->size / granularity, Granule{0});
    heap.settle(chunk);
  }
  note_reserved(heap, -static_cast<int64_t>(freed));
  return released + freed;
}

}  // namespace lockstep
