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

/// The cached memory of one stream in one pool: which bytes are allocated, free or unmapped. Pure
/// bookkeeping: it never calls the driver or waits. Guarded by `lock`, except that users of the
/// stream may read the first three members without it: these change only when the stream is
/// destroyed, under the lock of the heap list, too.
///
/// A freed small block first waits, unjoined, for the next request of its size. A request that
/// finds no such block joins all waiting blocks with their free neighbours: fewer isolated small
/// blocks leave more room for large ones.
class alignas(64) Heap {
 public:
  /// Largest size that waits for a request of its size; each size has a list. Larger chunks are
  /// joined at once, because unjoined they would fragment the memory.
  static constexpr size_t kLargestWaiting = 64 * 1024;
  /// Largest request of the small pool, as in PyTorch.
  static constexpr size_t kLargestSmall = size_t{1} << 20;

  Heap(ChunkTable& table, Stream stream, PoolId pool) : stream(stream), pool(pool), table_(table) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Stream stream;  ///< its id is negative if the stream was destroyed
  PoolId pool;
  bool keeps_layout = false;  ///< free memory must not be moved: a graph may replay on it
  mutable SpinLock lock;

  /// Takes a waiting chunk of exactly `size` (a multiple of 512, at most kLargestWaiting); null if
  /// there is none.
  Chunk* take_waiting(size_t size) noexcept {
    Chunk* const chunk = waiting_[size / kChunkUnit];
    if (chunk != nullptr) waiting_[size / kChunkUnit] = chunk->bin_next;
    return chunk;
  }
  /// Frees a chunk that no stream uses any more. Joining may drop its record.
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

  /// Takes the best free chunk for a request of `size`, cut to size; null if there is none. The
  /// caller sets its state.
  Chunk* take(size_t size, bool small, const AllocatorOptions& options);
  /// Joins all waiting chunks.
  void join_waiting() noexcept;
  /// Frees a chunk and joins it with its free neighbours.
  void join(Chunk* chunk) noexcept;
  /// Cuts a chunk that is in no bin to `size`. Returns the rest, a chunk of the same state.
  Chunk* split(Chunk* chunk, size_t size);

  /// Takes the part [address, address + size) of a free chunk; null if not all of it is free.
  Chunk* take_at(const Segment& segment, uintptr_t address, size_t size);
  /// Inserts the new record `front` before `chunk` and moves the first front->size bytes of `chunk`
  /// to it. If no byte is left, `chunk` is removed from the segment.
  void replace_front(Chunk* chunk, Chunk* front);
  /// Whether the rest of a chunk after a request is split off as a chunk of its own.
  static bool splits(size_t rest, size_t size, bool small, const AllocatorOptions& options);

  // Segments.
  Segment& add_segment(Segment segment, ChunkState state);
  /// Removes a segment that consists of one chunk in no bin.
  void remove_segment(Segment* segment);
  std::span<const std::unique_ptr<Segment>> segments() const noexcept { return segments_; }
  Segment* range() const noexcept { return range_; }
  /// Holds plain segments that are entirely free and at least `at_least` large, largest first,
  /// until they sum up to `bytes`. Their chunks become kHeld.
  std::vector<Chunk*> hold_free_segments(size_t bytes, size_t at_least = 0);

  // The expandable range.
  /// The best place for a request if memory is mapped for it: the one that lacks the fewest
  /// granules, of equal ones the lowest.
  struct Place {
    uintptr_t address = 0;
    size_t missing = 0;  ///< number of granules; 0: there is no such place
  };
  Place find_place(size_t size) const;
  /// Joins the free and unmapped chunks of [begin, end), which must be one run, into one kHeld
  /// chunk.
  Chunk* hold(uintptr_t begin, uintptr_t end);
  /// Holds up to `count` free granules outside [begin, end), highest first. Their chunks become
  /// kHeld.
  std::vector<Chunk*> hold_granules(size_t count, uintptr_t begin, uintptr_t end);
  /// Releases a held chunk of the range: free where granules are mapped, unmapped elsewhere.
  void settle(Chunk* chunk) noexcept;
  /// Number of contiguous mapped runs of the range.
  int64_t count_mapped_runs() const;
  /// The chunk of the segment that contains this address.
  static Chunk* chunk_at(const Segment& segment, uintptr_t address);

  Chunk* new_record();
  void drop_record(Chunk* chunk) noexcept;
  /// Totals of free chunks.
  struct Free {
    size_t bytes = 0;
    size_t largest = 0;
    int64_t split_blocks = 0;  ///< free chunks of segments that are not entirely free
    int64_t split_bytes = 0;
  };
  Free free() const;
  bool is_empty() const noexcept { return counts.blocks() == 0 && pending.empty(); }

  HeapCounts counts;
  std::deque<Chunk*> pending;      ///< freed, but used by other streams: oldest first
  int64_t reserved = 0;            ///< mapped bytes of the range
  int64_t mapped_runs = 0;         ///< runs of the range, as of the last count
  int64_t moved_since_growth = 0;  ///< granules moved since the range last grew
  uint64_t searches = 0;
  std::unique_ptr<StepPlanner> planner;
  Chunk* arena = nullptr;       ///< arena of the plan; null if there is none
  std::vector<Chunk*> planned;  ///< live blocks in the arena

 private:
  void bin(Chunk* chunk) noexcept;
  void unbin(Chunk* chunk) noexcept;
  Chunk* take_from_range(size_t size, bool small);
  Chunk* find_in_range(size_t size, bool sparing) const;
  /// Whether only unmapped memory follows a free chunk.
  static bool is_at_end(const Chunk* chunk);
  Chunk* take_from_plain(size_t size, bool small, const AllocatorOptions& options);
  /// Merges `right` into its neighbour `left`.
  void merge(Chunk* left, Chunk* right) noexcept;
  void set_unmapped(Chunk* chunk) noexcept;

  std::array<Chunk*, kLargestWaiting / kChunkUnit + 1> waiting_{};
  std::array<uint64_t, kLargestWaiting / kChunkUnit / 64 + 1> has_waiting_{};
  PlaceBins places_;
  Chunk* loose_ = nullptr;  ///< the chunk of the range that was freed last; not yet in a bin,
                            ///< because it is often taken next
  std::array<std::unique_ptr<SizeBins>, 2> plain_;  ///< small, large; null if there is none
  std::vector<std::unique_ptr<Segment>> segments_;
  Segment* range_ = nullptr;
  Chunk* spare_ = nullptr;
  ChunkTable& table_;
};

}  // namespace lockstep
