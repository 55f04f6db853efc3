#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "core/base/spin_lock.h"
#include "core/memory/chunk.h"
#include "core/memory/snapshot.h"

namespace lockstep {

/// The thread's current module as a string that is never freed; null outside modules.
const std::string* current_module_interned();
/// The operator, module and call stack that allocated the block.
AllocationContext context_of(const Chunk& chunk);
BlockInfo info_of(const Chunk& chunk, BlockInfo::State state);

/// The last events of a device's memory, and the blocks that were live at the peak. Thread-safe;
/// may be called under a heap's lock.
class History {
 public:
  /// Keeps the last `entries` events; 0 stops and drops them.
  void start(size_t entries, bool stacks);
  bool stacks() const noexcept { return stacks_.load(std::memory_order_relaxed); }

  void add(TraceEntry entry);
  void add(TraceEntry::Action action, uintptr_t address, size_t size, const Stream& stream);
  /// Records an allocation and numbers it.
  void lend(Chunk& chunk, const Stream& stream);
  /// Records a free; call before the chunk changes.
  void give_back(const Chunk& chunk, const Stream& stream);
  void free_completed(const Chunk& chunk, const Stream& stream);

  std::vector<TraceEntry> entries() const;
  /// Blocks that were live at the peak and have been freed since.
  std::vector<BlockInfo> gone_since_peak() const;
  /// Whether a live block was already live at the peak.
  bool was_at_peak(const Chunk& chunk) const;
  void reset_peak();
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  void push(TraceEntry entry) LS_REQUIRES(lock_);

  mutable SpinLock lock_;
  std::atomic<bool> stacks_ = false;
  size_t capacity_ LS_GUARDED_BY(lock_) = 0;
  std::deque<TraceEntry> entries_ LS_GUARDED_BY(lock_);
  uint64_t sequence_ LS_GUARDED_BY(lock_) = 0;
  uint64_t started_ LS_GUARDED_BY(lock_) = 0;  ///< sequence number at `start`
  uint64_t peak_sequence_ LS_GUARDED_BY(lock_) = 0;
  int64_t bytes_ LS_GUARDED_BY(lock_) = 0;  ///< bytes allocated since `start` and still live
  int64_t peak_bytes_ LS_GUARDED_BY(lock_) = 0;
  std::vector<BlockInfo> gone_since_peak_ LS_GUARDED_BY(lock_);
};

}  // namespace lockstep
