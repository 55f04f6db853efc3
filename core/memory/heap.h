#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/base/spin_lock.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/chunk.h"
#include "core/memory/counts.h"
#include "core/memory/place_bins.h"
#include "core/memory/plan.h"
#include "core/memory/size_bins.h"

namespace lockstep {

/// The cached memory of one stream in one pool: which bytes are on loan, free or without memory.
/// Books alone; it never calls the driver or waits. All of it under `lock`, but that whoever uses
/// the stream may read the first three members: they change, under the lock of the list of heaps
/// too, when that is gone.
///
/// A small block that is given back waits, as it is, for the next request of its size. Whoever
/// misses ends all waits first, so that free neighbours join: the fewer small blocks lie about
/// alone, the more room is left for large ones.
class alignas(64) Heap {
 public:
  static constexpr size_t kLargestWaiting = 64 * 1024;
  static constexpr size_t kLargestSmall = size_t{1} << 20;

  Heap(ChunkTable& table, Stream stream, PoolId pool) : stream(stream), pool(pool), table_(table) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Stream stream;  ///< its number is negative when it is gone
  PoolId pool;
  bool keeps_layout = false;  ///< free memory stays where it is: a graph may replay on it
  mutable SpinLock lock;

  /// A free chunk of exactly `size` (a multiple of 512, at most kLargestWaiting); null if none
  /// waits.
  Chunk* take_waiting(size_t size) noexcept {
    Chunk* const chunk = waiting_[size / kChunkUnit];
    if (chunk != nullptr) waiting_[size / kChunkUnit] = chunk->bin_next;
    return chunk;
  }
  /// Takes a chunk that nobody uses any more. It may be gone afterwards.
  void put(Chunk* chunk) noexcept {
    if (chunk->size <= kLargestWaiting) {
      const size_t units = chunk->size / kChunkUnit;
      chunk->state = ChunkState::kWaiting;
      chunk->bin_next = waiting_[units];
      waiting_[units] = chunk;
      has_waiting_[units / 64] |= uint64_t{1} << units % 64;
    } else {
      join(chunk);
    }
  }

  /// The best free chunk for a request of `size`, cut to size; null if there is none. The caller
  /// says what becomes of it.
  Chunk* take(size_t size, bool small, const AllocatorOptions& options);
  /// Ends every wait.
  void join_waiting() noexcept;
  /// Makes a chunk free and joins it with its free neighbours.
  void join(Chunk* chunk) noexcept;
  /// Cuts a chunk that is in no bin to `size`; the rest becomes a chunk of the same state, which is
  /// returned.
  Chunk* split(Chunk* chunk, size_t size);

  /// The part [address, address + size) of a free chunk; null when not all of it is free.
  Chunk* take_at(const Segment& segment, uintptr_t address, size_t size);
  /// Gives the first bytes of a chunk to a record that is not in the segment yet, as many as that
  /// one's size. When no byte is left, the chunk is not in the segment any more.
  void replace_front(Chunk* chunk, Chunk* front);
  /// Whether what a request leaves of a plain chunk becomes a chunk of its own.
  static bool splits(size_t rest, size_t size, bool small, const AllocatorOptions& options);

  // Segments.
  Segment& add_segment(Segment segment, ChunkState state);
  /// Of a segment that is one chunk in no bin.
  void remove_segment(Segment* segment);
  std::span<const std::unique_ptr<Segment>> segments() const noexcept { return segments_; }
  Segment* range() const noexcept { return range_; }
  /// Takes plain segments that are free as a whole, largest first, until they are `bytes`; those at
  /// least `at_least` large. Their chunks are kHeld.
  std::vector<Chunk*> hold_free_segments(size_t bytes, size_t at_least = 0);

  // The range.
  /// Where a request would go if memory could be mapped: the place that lacks the fewest granules,
  /// of equal ones the lowest.
  struct Place {
    uintptr_t address = 0;
    size_t missing = 0;  ///< granules; 0: there is no such place
  };
  Place find_place(size_t size) const;
  /// Makes one chunk, kHeld, of free and unmapped ones: [begin, end), which must lie in one run.
  Chunk* hold(uintptr_t begin, uintptr_t end);
  /// Takes up to `count` free granules outside [begin, end), highest first. Chunks are kHeld.
  std::vector<Chunk*> hold_granules(size_t count, uintptr_t begin, uintptr_t end);
  /// Brings a held chunk of the range back: free where granules are mapped, unmapped elsewhere.
  void settle(Chunk* chunk) noexcept;
  /// Stretches of the range that have memory.
  int64_t count_mapped_runs() const;
  /// The chunk of the segment that has this address.
  static Chunk* chunk_at(const Segment& segment, uintptr_t address);

  Chunk* new_record();
  void drop_record(Chunk* chunk) noexcept;
  /// Bytes of free chunks, and of the largest one.
  struct Free {
    size_t bytes = 0;
    size_t largest = 0;
    int64_t split_blocks = 0;  ///< of segments that are not free as a whole
    int64_t split_bytes = 0;
  };
  Free free() const;
  bool is_empty() const noexcept { return counts.blocks() == 0 && pending.empty(); }

  HeapCounts counts;
  std::deque<Chunk*> pending;      ///< given back, used by other streams: oldest first
  int64_t reserved = 0;            ///< bytes of the range that are mapped
  int64_t mapped_runs = 0;         ///< in the range, when last counted
  int64_t moved_since_growth = 0;  ///< granules
  uint64_t searches = 0;
  std::unique_ptr<StepPlanner> planner;
  Chunk* arena = nullptr;       ///< of the plan; null while there is none
  std::vector<Chunk*> planned;  ///< on loan from the arena

 private:
  void bin(Chunk* chunk) noexcept;
  void unbin(Chunk* chunk) noexcept;
  Chunk* take_from_range(size_t size, bool small);
  Chunk* find_in_range(size_t size, bool sparing) const;
  /// Whether nobody is behind a free chunk.
  static bool is_at_end(const Chunk* chunk);
  Chunk* take_from_plain(size_t size, bool small, const AllocatorOptions& options);
  /// Adds the right one to the left one, its neighbour.
  void merge(Chunk* left, Chunk* right) noexcept;
  void set_unmapped(Chunk* chunk) noexcept;

  std::array<Chunk*, kLargestWaiting / kChunkUnit + 1> waiting_{};
  std::array<uint64_t, kLargestWaiting / kChunkUnit / 64 + 1> has_waiting_{};
  PlaceBins places_;
  Chunk* loose_ = nullptr;  ///< the chunk of the range that became free last: in no bin as yet,
                            ///< because it is often the next to be taken
  std::array<std::unique_ptr<SizeBins>, 2> plain_;  ///< small, large; null while there is none
  std::vector<std::unique_ptr<Segment>> segments_;
  Segment* range_ = nullptr;
  Chunk* spare_ = nullptr;
  ChunkTable& table_;
};

}  // namespace lockstep
