#pragma once

#include <array>
#include <bit>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/base/spin_lock.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/chunk.h"
#include "core/memory/counts.h"
#include "core/memory/live_trend.h"
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
///
/// In the range, blocks go to the lowest place that fits while the live bytes rise, and to the
/// highest while they fall. Gradients, which a backward pass allocates between the activations it
/// frees, so collect at the top: at the lowest places they would stay scattered among the holes of
/// the freed activations, and no activation of the next micro-batch would fit between them.
class alignas(64) Heap {
 public:
  /// Largest size that waits for a request of its size; each size has a list. Larger chunks are
  /// joined at once, because unjoined they would fragment the memory.
  static constexpr size_t kLargestWaiting = 64 * 1024;
  /// Largest request of the small pool, as in PyTorch.
  static constexpr size_t kLargestSmall = size_t{1} << 20;

  /// `unit` is DeviceMemory::block_unit.
  Heap(ChunkTable& table, Stream stream, PoolId pool, size_t unit)
      : stream(stream), pool(pool), unit_bits_(std::countr_zero(unit)), table_(table) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Stream stream;  ///< its id is negative if the stream was destroyed
  PoolId pool;
  bool keeps_layout = false;  ///< free memory must not be moved: a graph may replay on it
  mutable SpinLock lock;

  /// Takes a waiting chunk of exactly `size` (whole units, at most kLargestWaiting); null if
  /// there is none.
  Chunk* take_waiting(size_t size) noexcept LS_REQUIRES(lock) {
    Chunk* const chunk = waiting_[size >> unit_bits_];
    if (chunk != nullptr) waiting_[size >> unit_bits_] = chunk->bin_next;
    return chunk;
  }
  /// Frees a chunk that no stream uses any more. Joining may drop its record.
  void put(Chunk* chunk) noexcept LS_REQUIRES(lock) {
    if (chunk->size <= kLargestWaiting) {
      const size_t units = chunk->size >> unit_bits_;
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
  Chunk* take(size_t size, bool small, const AllocatorOptions& options) LS_REQUIRES(lock);
  /// Call when a step begins: joins all waiting chunks and forgets the trend of the live bytes, so
  /// that a step with the requests of the step before gets the same places.
  void begin_step() noexcept LS_REQUIRES(lock) {
    join_waiting();
    trend_.reset();
  }
  /// Joins all waiting chunks.
  void join_waiting() noexcept LS_REQUIRES(lock);
  /// Frees a chunk and joins it with its free neighbours.
  void join(Chunk* chunk) noexcept LS_REQUIRES(lock);
  /// Cuts a chunk that is in no bin to `size`. Returns the rest, a chunk of the same state.
  Chunk* split(Chunk* chunk, size_t size) LS_REQUIRES(lock);

  /// Takes the part [address, address + size) of a free chunk; null if not all of it is free.
  Chunk* take_at(const Segment& segment, uintptr_t address, size_t size) LS_REQUIRES(lock);
  /// Inserts the new record `front` before `chunk` and moves the first front->size bytes of `chunk`
  /// to it. If no byte is left, `chunk` is removed from the segment.
  void replace_front(Chunk* chunk, Chunk* front) LS_REQUIRES(lock);
  /// Whether the rest of a chunk after a request is split off as a chunk of its own.
  static bool splits(size_t rest, size_t size, bool small, const AllocatorOptions& options);

  // Segments.
  Segment& add_segment(Segment segment, ChunkState state) LS_REQUIRES(lock);
  /// Removes a segment that consists of one chunk in no bin.
  void remove_segment(Segment* segment) LS_REQUIRES(lock);
  std::span<const std::unique_ptr<Segment>> segments() const noexcept LS_REQUIRES(lock) {
    return segments_;
  }
  Segment* range() const noexcept LS_REQUIRES(lock) { return range_; }
  /// Holds plain segments that are entirely free and at least `at_least` large, largest first,
  /// until they sum up to `bytes`. Their chunks become kHeld.
  std::vector<Chunk*> hold_free_segments(size_t bytes, size_t at_least = 0) LS_REQUIRES(lock);

  // The expandable range.
  /// The best place for a request if memory is mapped for it: the one that lacks the fewest
  /// granules, of equal ones the lowest.
  struct Place {
    uintptr_t address = 0;
    size_t missing = 0;  ///< number of granules; 0: there is no such place
  };
  Place find_place(size_t size) const LS_REQUIRES(lock);
  /// An unmapped chunk with bytes in [begin, end); there must be one.
  Chunk* unmapped_in(uintptr_t begin, uintptr_t end) const LS_REQUIRES(lock);
  /// Joins the free and unmapped chunks of [begin, end), which must be one run, into one kHeld
  /// chunk. They are looked for from `near` on, one of them.
  Chunk* hold(Chunk* near, uintptr_t begin, uintptr_t end) LS_REQUIRES(lock);
  /// Holds up to `count` free granules outside [begin, end), highest first. Their chunks become
  /// kHeld.
  std::vector<Chunk*> hold_granules(size_t count, uintptr_t begin, uintptr_t end) LS_REQUIRES(lock);
  /// Releases a held chunk of the range: free where granules are mapped, unmapped elsewhere.
  void settle(Chunk* chunk) noexcept LS_REQUIRES(lock);
  /// Number of contiguous mapped runs of the range.
  int64_t count_mapped_runs() const LS_REQUIRES(lock);
  /// The chunk of the segment that contains this address.
  static Chunk* chunk_at(const Segment& segment, uintptr_t address);

  Chunk* new_record() LS_REQUIRES(lock);
  void drop_record(Chunk* chunk) noexcept LS_REQUIRES(lock);
  /// Free chunks of plain segments that are not entirely free.
  struct Splits {
    int64_t blocks = 0;
    int64_t bytes = 0;
  };
  Splits count_splits() const LS_REQUIRES(lock);
  bool is_empty() const noexcept LS_REQUIRES(lock) {
    return counts.blocks() == 0 && pending.empty();
  }

  HeapCounts counts LS_GUARDED_BY(lock);
  std::deque<Chunk*> pending
      LS_GUARDED_BY(lock);                      ///< freed, but used by other streams: oldest first
  int64_t reserved LS_GUARDED_BY(lock) = 0;     ///< mapped bytes of the range
  int64_t mapped_runs LS_GUARDED_BY(lock) = 0;  ///< runs of the range, as of the last count
  int64_t moved_since_growth LS_GUARDED_BY(lock) = 0;  ///< granules moved since the range last grew
  /// Chunks whose granules moved together, kLeaving until the work queued before is done.
  struct Leaving {
    std::vector<Chunk*> chunks;
    Event after;
  };
  std::deque<Leaving> leaving LS_GUARDED_BY(lock);  ///< the oldest first
  int64_t leaving_bytes LS_GUARDED_BY(lock) = 0;
  uint64_t searches LS_GUARDED_BY(lock) = 0;
  std::unique_ptr<StepPlanner> planner LS_GUARDED_BY(lock);
  Chunk* arena LS_GUARDED_BY(lock) = nullptr;       ///< arena of the plan; null if there is none
  std::vector<Chunk*> planned LS_GUARDED_BY(lock);  ///< live blocks in the arena

 private:
  void bin(Chunk* chunk) noexcept LS_REQUIRES(lock);
  void unbin(Chunk* chunk) noexcept LS_REQUIRES(lock);
  Chunk* take_from_range(size_t size, bool small) LS_REQUIRES(lock);
  Chunk* find_in_range(size_t size, bool sparing) const LS_REQUIRES(lock);
  /// Takes the end of the highest chunk of the range that fits. The chunk above all blocks comes
  /// last.
  Chunk* take_highest_from_range(size_t size) LS_REQUIRES(lock);
  Chunk* find_highest_in_range(size_t size) const LS_REQUIRES(lock);
  /// Whether only unmapped memory follows a free chunk.
  static bool is_at_end(const Chunk* chunk);
  Chunk* take_from_plain(size_t size, bool small, const AllocatorOptions& options)
      LS_REQUIRES(lock);
  /// Merges `right` into its neighbour `left`.
  void merge(Chunk* left, Chunk* right) noexcept LS_REQUIRES(lock);
  void set_unmapped(Chunk* chunk) noexcept LS_REQUIRES(lock);
  /// Makes a chunk of the range kUnmapped, and lists it.
  void list_unmapped(Chunk* chunk) noexcept LS_REQUIRES(lock);
  void unlist_unmapped(Chunk* chunk) noexcept LS_REQUIRES(lock);

  const int unit_bits_;  ///< log2 of the unit of blocks
  /// Lists of waiting chunks, by their size in units.
  std::array<Chunk*, kLargestWaiting / kChunkUnit + 1> waiting_ LS_GUARDED_BY(lock){};
  std::array<uint64_t, kLargestWaiting / kChunkUnit / 64 + 1> has_waiting_ LS_GUARDED_BY(lock){};
  PlaceBins places_ LS_GUARDED_BY(lock);
  LiveTrend trend_ LS_GUARDED_BY(lock);
  Chunk* loose_ LS_GUARDED_BY(lock) = nullptr;  ///< the chunk of the range that was freed last; not
                                                ///< yet in a bin, because it is often taken next
  std::array<std::unique_ptr<SizeBins>, 2> plain_
      LS_GUARDED_BY(lock);  ///< small, large; null if there is none
  std::vector<std::unique_ptr<Segment>> segments_ LS_GUARDED_BY(lock);
  Segment* range_ LS_GUARDED_BY(lock) = nullptr;
  Chunk* unmapped_ LS_GUARDED_BY(lock) = nullptr;  ///< unmapped chunks of the range, in no order
  Chunk* spare_ LS_GUARDED_BY(lock) = nullptr;
  ChunkTable& table_;
};

}  // namespace lockstep
