#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/current_scope.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/counts.h"
#include "core/memory/heap.h"
#include "core/memory/history.h"
#include "core/memory/poison.h"

namespace lockstep {

/// The inside of a CachingAllocator. Its parts: requests and frees (caching_allocator.cc), taking
/// memory from the driver and giving it back (growth.cc), what is tried when memory is short
/// (ladder.cc), the report when it is out (out_of_memory.cc), pools (private_pools.cc), what it
/// tells (observation.cc), planned steps (planned_steps.cc).
///
/// No lock is held while the driver works, a stream is waited for or a callback runs: what is
/// worked on is kHeld meanwhile. A heap's lock is taken before those of counts, history, events and
/// callbacks, after that of the list of heaps, and never together with another heap's.
struct CachingAllocator::State {
  using HeapLock = std::unique_lock<SpinLock>;

  /// One request on its way.
  struct Request {
    Heap& heap;
    size_t bytes;  ///< as asked for
    size_t size;   ///< rounded
    bool small;
    const AllocatorOptions& options;
  };

  /// What memory may be taken: by the ratio of the options, moving before it is exceeded; moving
  /// all that can be, and no more than is needed; only what the ratio allows.
  enum class Growth : uint8_t { kByRatio, kMoveFirst, kWithinRatio };

  /// Why requests and frees take the long way.
  enum Watch : uint32_t {
    kWatchHistory = 1,
    kWatchSizes = 2,    ///< roundup_power2_divisions
    kWatchPolling = 4,  ///< stream_reuse = kPoll
    kWatchPools = 8,    ///< a released pool still has blocks
    kWatchPlans = 16,
  };

  State(CachingAllocator& owner, Device device, DeviceMemory& memory, AllocatorOptions options);
  ~State();

  // Requests, caching_allocator.cc.
  Heap& heap_of(const Stream& stream) {
    if (thread_pool.first == &owner) [[unlikely]]
      return make_heap(stream.id, thread_pool.second);
    const auto id = static_cast<uint32_t>(stream.id);
    if (id < kDirectHeaps) {
      Heap* const heap = heaps[id].load(std::memory_order_acquire);
      if (heap != nullptr) [[likely]]
        return *heap;
    }
    return make_heap(stream.id, 0);
  }
  Heap& make_heap(int32_t stream, PoolId pool);
  /// All heaps, in the order in which they were made.
  std::vector<Heap*> all_heaps() const;

  bool is_watched() const noexcept { return watches.load(std::memory_order_relaxed) != 0; }
  void watch(Watch what, bool on) {
    on ? watches.fetch_or(what) : watches.fetch_and(~static_cast<uint32_t>(what));
  }

  /// Puts a chunk on loan. Under the heap's lock, as all below that take a heap.
  Block lend(Heap& heap, Chunk* chunk, size_t bytes, bool small) noexcept {
    chunk->state = ChunkState::kLive;
    chunk->requested = bytes;
    chunk->small = small;
    chunk->op = current_operator();
    chunk->module = current_module().empty() ? nullptr : current_module_interned();
    chunk->phase = current_phase();
    chunk->handle += Chunk::kLoan;
    if (kCanPoison && poisons) {
      unpoison(chunk->address, bytes);
      poison(chunk->address + bytes, chunk->size - bytes);
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
  void publish_if_due(Heap& heap) noexcept {
    if (!DeviceCounts::is_due(heap.counts)) return;
    if (has_several_heaps.load(std::memory_order_relaxed)) {
      counts.publish(heap.counts);
    } else {
      HeapCounts::defer(heap.counts);
    }
  }
  Block allocate_slowly(Heap& heap, size_t bytes);
  void free_slowly(Heap& heap, Chunk* chunk, HeapLock& lock) noexcept;
  /// Nobody may touch a chunk that was given back, unless a graph may replay on it.
  void close(const Heap& heap, const Chunk* chunk) const noexcept {
    if (kCanPoison && poisons && heap.pool == 0) poison(chunk->address, chunk->size);
  }
  /// Before memory leaves for the driver: others may get the addresses.
  void open(uintptr_t address, size_t bytes) const noexcept {
    if (kCanPoison && poisons) unpoison(address, bytes);
  }
  /// The chunk may serve its stream again.
  void complete(Heap& heap, Chunk* chunk) noexcept;
  /// The record that `block` names, which may be on loan to another by now; null if there is none.
  Chunk* record_of(const Block& block) const noexcept {
    Chunk* const chunk =
        table.find(static_cast<uint32_t>(reinterpret_cast<uint64_t>(block.cookie)));
    return block.owner == &owner && chunk != nullptr && chunk->heap != nullptr ? chunk : nullptr;
  }
  bool is_current(const Block& block, const Chunk* chunk) const noexcept {
    return chunk->state == ChunkState::kLive &&
           chunk->handle == reinterpret_cast<uint64_t>(block.cookie) &&
           (addressless || chunk->address == reinterpret_cast<uintptr_t>(block.data));
  }
  /// The record that `block` is the current handle of, with its heap locked; null if there is none.
  Chunk* find_live(const Block& block, HeapLock& lock) noexcept;
  /// Calls `note(uses)` for a block on loan that another stream than its own uses.
  template <class Note>
  void note_use(const Block& block, const Stream& stream, Note note);
  /// Bytes that a request of `bytes` takes. Throws OutOfMemoryError for absurd ones.
  size_t rounded(size_t bytes, const AllocatorOptions& options) const;

  // Streams.
  Event take_event();
  void return_event(Event event) noexcept;
  /// Waits for what is queued on `stream` now. Counted; a destroyed stream has nothing queued.
  void wait_for(const Stream& stream, const char* why) noexcept;
  bool is_idle(const Stream& stream) const noexcept;
  /// Makes the heap's stream wait for the users of its oldest pending block, and completes that.
  void reuse_oldest_pending(Heap& heap) noexcept;
  /// Completes the pending blocks whose users are seen to be done.
  void reuse_finished(Heap& heap) noexcept;

  // Memory, growth.cc.
  size_t budget() const;
  bool charge(size_t bytes) noexcept;
  void discharge(size_t bytes) noexcept { charged.fetch_sub(static_cast<int64_t>(bytes)); }
  /// A chunk of memory that the heap did not have. May give the lock up meanwhile. Null when there
  /// is none to be had.
  Chunk* grow(const Request& request, HeapLock& lock, Growth how);
  Chunk* grow_range(const Request& request, HeapLock& lock, Growth how, const Heap::Place& place);
  Chunk* grow_plain(const Request& request, HeapLock& lock, Growth how);
  bool ensure_range(Heap& heap, size_t size);
  size_t granules_to_move(const Request& request, Growth how, size_t missing) const;
  bool map_runs(Segment& range, const std::vector<std::pair<size_t, size_t>>& runs,
                std::span<const Granule> granules) noexcept;
  /// Gives free memory back to the driver, granules and plain segments, about `bytes` or all that
  /// there is. Returns how much. May give the lock up.
  size_t release_cached(Heap& heap, HeapLock& lock, size_t bytes);
  /// Of the range, after granules were mapped or unmapped.
  void note_reserved(Heap& heap, int64_t bytes);
  size_t release_segments(Heap& heap, HeapLock& lock, const std::vector<Chunk*>& chunks);
  void note_segment(TraceEntry::Action action, uintptr_t address, size_t size,
                    const Stream& stream);

  // Shortage, ladder.cc and out_of_memory.cc.
  /// Tries everything. Returns with the lock held, or throws OutOfMemoryError.
  Chunk* find(const Request& request, HeapLock& lock);
  bool call_free_memory_callbacks(HeapLock& lock);
  void collect_garbage(const Request& request, HeapLock& lock);
  size_t release_elsewhere(const Request& request, HeapLock& lock, size_t bytes);
  void synchronize_everything(HeapLock& lock);
  [[noreturn]] void throw_out_of_memory(const Request& request, HeapLock& lock);

  // Observation, observation.cc.
  /// All that is counted, with every heap's share up to date.
  DeviceMemoryStats collect_counts() const;

  // Pools, private_pools.cc.
  struct Pool {
    std::vector<Heap*> heaps;
    bool released = false;
  };
  /// Gives back the memory of released pools that nobody uses.
  void reap_pools(bool may_wait) noexcept;

  // Planned steps, planned_steps.cc.
  /// The place that the plan has for the request; null where it has none.
  Chunk* take_planned(const Request& request, HeapLock& lock, StepPlanner::Ticket& ticket);
  /// Makes ordinary chunks of the arena, so that what is free of it serves everybody.
  void dissolve_arena(Heap& heap);

  static constexpr uint32_t kDirectHeaps = 1024;
  static constexpr size_t kLargestRange = size_t{2} << 40;  // its table of granules is 8 MiB then

  CachingAllocator& owner;
  const Device device;
  DeviceMemory& memory;
  const bool synchronous;  ///< streams are done when a call returns
  const bool addressless;  ///< blocks have no addresses
  bool poisons = false;    ///< forbid_idle_memory was called
  std::atomic<const AllocatorOptions*> options;
  std::atomic<uint32_t> watches = 0;
  std::atomic<bool> has_several_heaps = false;
  std::array<std::atomic<Heap*>, kDirectHeaps> heaps{};  ///< of pool 0, by stream
  ChunkTable table;
  mutable DeviceCounts counts;

  mutable SpinLock heaps_lock;  ///< of the list of heaps, pools and options
  std::vector<std::unique_ptr<Heap>> heap_list;
  std::map<std::pair<PoolId, int32_t>, Heap*> heap_map;
  std::vector<Heap*> unused_heaps;  ///< of pools that are gone
  std::map<PoolId, Pool> pools;
  PoolId last_pool = 0;
  std::vector<std::unique_ptr<const AllocatorOptions>> all_options;  ///< readers may be in any
  bool planned = false;

  SpinLock events_lock;
  std::vector<Event> events;

  SpinLock callbacks_lock;
  int last_callback = 0;
  std::map<int, std::function<bool()>> free_memory_callbacks;
  std::map<int, std::function<void(size_t, const std::string&)>> oom_observers;

  SpinLock raw_lock;
  std::unordered_map<uintptr_t, Block> raw_blocks;

  History history;
  DeviceMemoryStats baseline;        ///< of accumulated numbers, at their reset; under heaps_lock
  std::atomic<int64_t> charged = 0;  ///< bytes reserved or about to be
  std::atomic<int64_t> wrong_frees = 0;
  std::atomic<int64_t> retries = 0;
  std::atomic<int64_t> ooms = 0;
  std::atomic<int64_t> synchronizations = 0;
  std::atomic<int64_t> driver_allocations = 0;
  std::atomic<int64_t> driver_frees = 0;
  std::atomic<int64_t> other_driver_calls = 0;
  std::atomic<int64_t> stitched = 0;
  std::atomic<int64_t> stream_waits = 0;

  static thread_local constinit std::pair<CachingAllocator*, PoolId> thread_pool;
};

}  // namespace lockstep
