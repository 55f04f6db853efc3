#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/spin_lock.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/heap.h"
#include "core/memory/options.h"
#include "core/memory/stats.h"
#include "core/tensor/event.h"

namespace lockstep {

// Parts of a CachingAllocator. Each has its own lock, which guards that part only.
// CachingAllocator::State describes the order in which locks are taken.

/// The heaps of an allocator by pool and stream, and its pools. The only part that is used at each
/// request: `find` takes no lock.
struct HeapDirectory {
  struct Pool {
    std::vector<Heap*> heaps;
    bool released = false;
  };
  /// Streams with a smaller number are found without a lock.
  static constexpr uint32_t kDirect = 1024;

  /// The heap of the default pool for a stream; null if it is not made yet or the stream's number
  /// is negative or too large. Takes no lock.
  Heap* find(int32_t stream) const noexcept {
    const auto id = static_cast<uint32_t>(stream);
    return id < kDirect ? direct[id].load(std::memory_order_acquire) : nullptr;
  }
  /// Sets what `find` returns.
  void set_direct(int32_t stream, Heap* heap) noexcept LS_REQUIRES(lock) {
    const auto id = static_cast<uint32_t>(stream);
    if (id < kDirect) direct[id].store(heap, std::memory_order_release);
  }
  /// All heaps, in the order in which they were made. Takes the lock.
  std::vector<Heap*> all() const {
    const MutexLock guard(lock);
    std::vector<Heap*> heaps;
    for (const auto& heap : list) heaps.push_back(heap.get());
    return heaps;
  }

  std::atomic<bool> has_several = false;             ///< read without the lock
  std::array<std::atomic<Heap*>, kDirect> direct{};  ///< by stream number; read without the lock

  mutable SpinLock lock;
  std::vector<std::unique_ptr<Heap>> list LS_GUARDED_BY(lock);
  std::map<std::pair<PoolId, int32_t>, Heap*> by_stream LS_GUARDED_BY(lock);
  std::vector<Heap*> unused LS_GUARDED_BY(lock);  ///< heaps of destroyed pools, for new ones
  std::map<PoolId, Pool> pools LS_GUARDED_BY(lock);
  PoolId last_pool LS_GUARDED_BY(lock) = 0;
  bool planned LS_GUARDED_BY(lock) = false;  ///< new heaps of the default pool get a StepPlanner
};

/// The current options and all earlier ones, which are kept because a thread may still read them.
class OptionsStore {
 public:
  explicit OptionsStore(AllocatorOptions first) {
    versions_.push_back(std::make_unique<const AllocatorOptions>(std::move(first)));
    current_ = versions_.back().get();
  }
  /// Takes no lock. The reference stays valid as long as the store.
  const AllocatorOptions& current() const noexcept {
    return *current_.load(std::memory_order_acquire);
  }
  /// Replaces the options, then calls `publish` under the lock, so that of two calls the later one
  /// determines everything.
  template <class Publish>
  void set(const AllocatorOptions& options, Publish publish) {
    const MutexLock guard(lock_);
    versions_.push_back(std::make_unique<const AllocatorOptions>(options));
    current_.store(versions_.back().get(), std::memory_order_release);
    publish();
  }
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  std::atomic<const AllocatorOptions*> current_;
  SpinLock lock_;
  std::vector<std::unique_ptr<const AllocatorOptions>> versions_ LS_GUARDED_BY(lock_);
};

/// Events for reuse, because creating one is a driver call. Thread-safe.
class EventPool {
 public:
  /// Returns an event of the pool, or a new one if the pool is empty.
  Event take() {
    const MutexLock guard(lock_);
    if (events_.empty()) return Event();
    Event event = std::move(events_.back());
    events_.pop_back();
    return event;
  }
  void put(Event event) {
    const MutexLock guard(lock_);
    events_.push_back(std::move(event));
  }
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  SpinLock lock_;
  std::vector<Event> events_ LS_GUARDED_BY(lock_);
};

/// Functions of the program that are called when memory is short, by number. Thread-safe. They are
/// copied out first, so that no lock is held while they run.
class ShortageCallbacks {
 public:
  using FreeMemory = std::function<bool()>;
  using Observer = std::function<void(size_t bytes, const std::string& report)>;

  int add(FreeMemory callback) {
    const MutexLock guard(lock_);
    free_memory_.emplace(++last_number_, std::move(callback));
    return last_number_;
  }
  int add(Observer observer) {
    const MutexLock guard(lock_);
    observers_.emplace(++last_number_, std::move(observer));
    return last_number_;
  }
  void remove_free_memory(int number) {
    const MutexLock guard(lock_);
    free_memory_.erase(number);
  }
  void remove_observer(int number) {
    const MutexLock guard(lock_);
    observers_.erase(number);
  }
  /// Both in the order in which they were added.
  std::vector<FreeMemory> free_memory() const {
    const MutexLock guard(lock_);
    return copy(free_memory_);
  }
  std::vector<Observer> observers() const {
    const MutexLock guard(lock_);
    return copy(observers_);
  }
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  template <class Function>
  static std::vector<Function> copy(const std::map<int, Function>& functions) {
    std::vector<Function> copies;
    for (const auto& [number, function] : functions) copies.push_back(function);
    return copies;
  }

  mutable SpinLock lock_;
  int last_number_ LS_GUARDED_BY(lock_) = 0;
  std::map<int, FreeMemory> free_memory_ LS_GUARDED_BY(lock_);
  std::map<int, Observer> observers_ LS_GUARDED_BY(lock_);
};

/// Blocks that raw_alloc returned, by address. Thread-safe.
class RawBlocks {
 public:
  void add(const Block& block) {
    const MutexLock guard(lock_);
    blocks_.emplace(reinterpret_cast<uintptr_t>(block.data), block);
  }
  /// Removes and returns the block at `address`; nothing if there is none.
  std::optional<Block> take(void* address) {
    const MutexLock guard(lock_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
    if (found == blocks_.end()) return std::nullopt;
    const Block block = found->second;
    blocks_.erase(found);
    return block;
  }
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  SpinLock lock_;
  std::unordered_map<uintptr_t, Block> blocks_ LS_GUARDED_BY(lock_);
};

/// Values of the accumulated statistics when they were last reset. Thread-safe.
class StatsBaseline {
 public:
  void set(const DeviceMemoryStats& stats) {
    const MutexLock guard(lock_);
    stats_ = stats;
  }
  DeviceMemoryStats get() const {
    const MutexLock guard(lock_);
    return stats_;
  }
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  mutable SpinLock lock_;
  DeviceMemoryStats stats_ LS_GUARDED_BY(lock_);
};

/// Counters of rare events. Atomic, so they need no lock; statistics only.
struct RareEvents {
  std::atomic<int64_t> wrong_frees = 0;         ///< frees of blocks that were not allocated
  std::atomic<int64_t> retries = 0;             ///< requests served after memory was released
  std::atomic<int64_t> ooms = 0;                ///< OutOfMemoryErrors
  std::atomic<int64_t> synchronizations = 0;    ///< waits of the cpu for a stream
  std::atomic<int64_t> driver_allocations = 0;  ///< driver calls that allocate or map memory
  std::atomic<int64_t> driver_frees = 0;        ///< driver calls that free or unmap memory
  std::atomic<int64_t> other_driver_calls = 0;  ///< reserving and releasing addresses
  std::atomic<int64_t> stitched = 0;            ///< growths that moved granules
  std::atomic<int64_t> stream_waits = 0;        ///< waits of a stream for an event
};

}  // namespace lockstep
