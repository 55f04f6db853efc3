#pragma once

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/current_scope.h"
#include "core/base/mutex.h"
#include "core/memory/allocator_parts.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/counts.h"
#include "core/memory/heap.h"
#include "core/memory/history.h"
#include "core/memory/poison.h"

namespace lockstep {

/// The implementation of a CachingAllocator, by source file: requests and frees
/// (caching_allocator.cc), memory from and to the driver (growth.cc), fallbacks when memory is
/// short (ladder.cc), the report of an OutOfMemoryError (out_of_memory.cc), pools
/// (private_pools.cc), statistics and snapshots (observation.cc), planned steps (planned_steps.cc).
///
/// Locks: each heap and each part (allocator_parts.h) has its own; nothing else is locked. Order:
/// HeapDirectory, then one heap, then one of ChunkTable, DeviceCounts, History, EventPool. Two
/// heaps are never locked together, except around fork(). OptionsStore, ShortageCallbacks,
/// RawBlocks and StatsBaseline are locked alone.
///
/// No heap's lock is held during driver calls that obtain or return memory, waits for a stream, and
/// callbacks: the chunks concerned are kHeld meanwhile, which keeps other threads away from them.
struct CachingAllocator::State {
  using HeapLock = UniqueLock<SpinLock>;

  /// A request that is being served.
  struct Request {
    Heap& heap;
    size_t bytes;  ///< as asked for
    size_t size;   ///< rounded
    bool small;
    const AllocatorOptions& options;
  };

  /// How a heap may grow.
  enum class Growth : uint8_t {
    kByRatio,    ///< take new memory up to reserve_ratio, move free granules above it
    kMoveFirst,  ///< move as many granules as possible and take no more memory than is needed
  };

  /// Reasons why requests and frees take the slow path.
  enum Watch : uint32_t {
    kWatchHistory = 1,
    kWatchSizes = 2,    ///< roundup_power2_divisions
    kWatchPolling = 4,  ///< stream_reuse = kPoll
    kWatchPools = 8,    ///< a released pool still has blocks
    kWatchPlans = 16,
    kWatchSpans = 32,  ///< requests and frees are moments of a profile
  };

  State(CachingAllocator& owner, Device device, DeviceMemory& memory, AllocatorOptions options);
  ~State();

  // Requests, caching_allocator.cc.
  Heap& heap_of(const Stream& stream) {
    if (thread_pool.first == &owner) [[unlikely]]
      return make_heap(stream.id, thread_pool.second);
    Heap* const heap = directory.find(stream.id);
    if (heap != nullptr) [[likely]]
      return *heap;
    return make_heap(stream.id, 0);
  }
  /// Returns the heap of a stream in a pool and makes it if there is none.
  Heap& make_heap(int32_t stream, PoolId pool);

  size_t whole_units(size_t bytes) const noexcept { return (bytes + unit - 1) & ~(unit - 1); }
  bool is_watched() const noexcept { return watches.load(std::memory_order_relaxed) != 0; }
  void watch(Watch what, bool on) {
    on ? watches.fetch_or(what) : watches.fetch_and(~static_cast<uint32_t>(what));
  }

  /// Marks a chunk as allocated.
  Block lend(Heap& heap, Chunk* chunk, size_t bytes, bool small) noexcept LS_REQUIRES(heap.lock) {
    chunk->state = ChunkState::kLive;
    chunk->requested = bytes;
    chunk->small = small;
    chunk->op = current_operator();
    chunk->module = current_module().empty() ? nullptr : current_module_interned();
    chunk->phase = current_phase();
    chunk->handle += Chunk::kLoan;
    if (kCanPoison && poisons) {
      unpoison(chunk->address, chunk->size);
      if (heap.pool == 0) poison(chunk->address + bytes, chunk->size - bytes);
    }
    heap.counts.add(chunk->size, bytes, small);
    publish_if_due(heap);
    return block_of(chunk);
  }
  Block block_of(const Chunk* chunk) const noexcept {
    return {addressless ? nullptr : reinterpret_cast<void*>(chunk->address),
            kCanPoison && poisons ? chunk->requested : chunk->size,
            reinterpret_cast<void*>(chunk->handle), &owner};
  }
  void publish_if_due(Heap& heap) noexcept LS_REQUIRES(heap.lock) {
    if (!DeviceCounts::is_due(heap.counts)) return;
    if (directory.has_several.load(std::memory_order_relaxed)) {
      counts.publish(heap.counts);
    } else {
      HeapCounts::defer(heap.counts);
    }
  }
  Block allocate_slowly(Heap& heap, size_t bytes);
  void free_slowly(Heap& heap, Chunk* chunk, HeapLock& lock) noexcept LS_REQUIRES(heap.lock);
  /// Poisons a freed chunk, unless it belongs to a pool: a graph may replay on it. Nor are bytes
  /// behind a request poisoned there, which an earlier block may have had in the graph.
  void close(const Heap& heap, const Chunk* chunk) const noexcept {
    if (kCanPoison && poisons && heap.pool == 0) poison(chunk->address, chunk->size);
  }
  /// Unpoisons memory before it is returned to the driver, which may reuse its addresses.
  void open(uintptr_t address, size_t bytes) const noexcept {
    if (kCanPoison && poisons) unpoison(address, bytes);
  }
  /// Frees a chunk that no stream uses any more.
  void complete(Heap& heap, Chunk* chunk) noexcept LS_REQUIRES(heap.lock);
  /// The record that `block` names, which may describe a later block by now; null if there is none.
  Chunk* record_of(const Block& block) const noexcept {
    Chunk* const chunk =
        table.find(static_cast<uint32_t>(reinterpret_cast<uint64_t>(block.cookie)));
    return block.owner == &owner && chunk != nullptr && chunk->heap != nullptr ? chunk : nullptr;
  }
  /// Whether `block` is the current handle of the record. Call under the lock of its heap.
  bool is_current(const Block& block, const Chunk* chunk) const noexcept {
    return chunk->state == ChunkState::kLive &&
           chunk->handle == reinterpret_cast<uint64_t>(block.cookie) &&
           (addressless || chunk->address == reinterpret_cast<uintptr_t>(block.data));
  }
  /// Calls `note(uses)` if `block` is allocated and `stream` is not its own stream.
  template <class Note>
  void note_use(const Block& block, const Stream& stream, Note note);
  /// Bytes of the chunk for a request of `bytes`. Throws OutOfMemoryError above 2^62 bytes.
  size_t rounded(size_t bytes, const AllocatorOptions& options) const;

  // Streams.
  /// Puts an event of this device back into the pool; destroys others.
  void return_event(Event event) noexcept;
  /// Waits for the work that is queued on `stream` now, and counts the wait. Returns at once for a
  /// destroyed stream.
  void wait_for(const Stream& stream, const char* why) noexcept;
  void wait_for(Event event, const Stream& stream, const char* why);
  bool is_idle(const Stream& stream) const noexcept;
  /// Makes the heap's stream wait for the users of its oldest pending block, then completes the
  /// block.
  void reuse_oldest_pending(Heap& heap) noexcept LS_REQUIRES(heap.lock);
  /// Completes the pending blocks whose events have been reached.
  void reuse_finished(Heap& heap) noexcept LS_REQUIRES(heap.lock);

  // Memory, growth.cc.
  size_t budget() const;
  /// Adds `bytes` to the bytes charged to the budget; false, without a change, if it is exceeded.
  bool charge(size_t bytes) noexcept;
  void discharge(size_t bytes) noexcept { charged.fetch_sub(static_cast<int64_t>(bytes)); }
  /// Returns a chunk of memory new to the heap; null if there is no more. May release the lock
  /// meanwhile.
  Chunk* grow(const Request& request, HeapLock& lock, Growth how) LS_REQUIRES(request.heap.lock);
  Chunk* grow_range(const Request& request, HeapLock& lock, Growth how, const Heap::Place& place)
      LS_REQUIRES(request.heap.lock);
  Chunk* grow_plain(const Request& request, HeapLock& lock, Growth how)
      LS_REQUIRES(request.heap.lock);
  bool ensure_range(Heap& heap, size_t size) LS_REQUIRES(heap.lock);
  size_t granules_to_move(const Request& request, Growth how, size_t missing) const
      LS_REQUIRES(request.heap.lock);
  bool map_runs(Segment& range, const std::vector<std::pair<size_t, size_t>>& runs,
                std::span<const Granule> granules) noexcept;
  /// Unmaps chunks of a range, which no work may use.
  void unmap_emptied(const std::vector<Chunk*>& chunks, const Stream& stream) noexcept;
  /// Leaves the chunks mapped, without the lock, until the work that is queued now is done. Returns
  /// the event to wait for; none if the chunks had to be unmapped at once.
  std::optional<Event> leave_mapped(const std::vector<Chunk*>& chunks, const Stream& stream);
  /// Unmaps chunks that are leaving, the oldest first, until at most `most` bytes of them are left.
  /// May release the lock meanwhile.
  void unmap_leaving(Heap& heap, HeapLock& lock, int64_t most) LS_REQUIRES(heap.lock);
  /// Returns about `bytes` of free memory (plain segments and granules), or all there is, to the
  /// driver. Returns how many bytes. May release the lock meanwhile.
  size_t release_cached(Heap& heap, HeapLock& lock, size_t bytes) LS_REQUIRES(heap.lock);
  /// Updates the reserved bytes and segments of the range after granules were mapped or unmapped.
  void note_reserved(Heap& heap, int64_t bytes) LS_REQUIRES(heap.lock);
  size_t release_segments(Heap& heap, HeapLock& lock, const std::vector<Chunk*>& chunks)
      LS_REQUIRES(heap.lock);
  void note_segment(TraceEntry::Action action, uintptr_t address, size_t size,
                    const Stream& stream);

  // Shortage, ladder.cc and out_of_memory.cc.
  /// Finds memory, with every fallback. Returns with the lock held, or throws OutOfMemoryError.
  Chunk* find(const Request& request, HeapLock& lock) LS_REQUIRES(request.heap.lock);
  bool call_free_memory_callbacks(HeapLock& lock);
  void collect_garbage(const Request& request, HeapLock& lock) LS_REQUIRES(request.heap.lock);
  size_t release_elsewhere(const Request& request, HeapLock& lock, size_t bytes)
      LS_REQUIRES(request.heap.lock);
  void synchronize_everything(HeapLock& lock);
  [[noreturn]] void throw_out_of_memory(const Request& request, HeapLock& lock)
      LS_REQUIRES(request.heap.lock);

  // Observation, observation.cc.
  /// All counters, after every heap has published its own.
  DeviceMemoryStats collect_counts() const;

  // Pools, private_pools.cc.
  /// Returns the memory of released pools without live blocks to the driver.
  void reap_pools(bool may_wait) noexcept;

  // Planned steps, planned_steps.cc.
  /// A chunk at the place that the plan has for the request; null if it has none.
  Chunk* take_planned(const Request& request, HeapLock& lock, StepPlanner::Ticket& ticket)
      LS_REQUIRES(request.heap.lock);
  /// Turns the arena into ordinary chunks, so that its free parts serve every request.
  void dissolve_arena(Heap& heap) LS_REQUIRES(heap.lock);

  static constexpr size_t kLargestRange = size_t{2} << 40;  // its table of granules is 8 MiB then

  CachingAllocator& owner;
  const Device device;
  DeviceMemory& memory;
  const size_t unit;       ///< DeviceMemory::block_unit
  const bool synchronous;  ///< work is done when a call returns: the device has no streams
  const bool addressless;  ///< blocks have no addresses
  bool poisons = false;    ///< forbid_idle_memory was called
  std::atomic<uint32_t> watches = 0;  ///< bits of Watch
  std::atomic<int64_t> charged = 0;   ///< bytes reserved or about to be, checked against the budget

  ChunkTable table;  ///< outlives the heaps
  HeapDirectory directory;
  mutable DeviceCounts counts;
  OptionsStore options;
  EventPool events;
  ShortageCallbacks callbacks;
  RawBlocks raw_blocks;
  History history;
  StatsBaseline baseline;
  RareEvents rare;

  /// The allocator and pool of this thread's innermost PoolGuard.
  static thread_local constinit std::pair<CachingAllocator*, PoolId> thread_pool;
};

}  // namespace lockstep
