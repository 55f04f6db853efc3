#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "core/base/spin_lock.h"
#include "core/memory/chunk.h"
#include "core/memory/snapshot.h"

namespace lockstep {

/// This thread's current module as a string that lives for ever; null outside modules.
const std::string* current_module_interned();
/// Who asked for the block.
AllocationContext context_of(const Chunk& chunk);
BlockInfo info_of(const Chunk& chunk, BlockInfo::State state);

/// The last things that happened to a device's memory, and which blocks were on loan at the peak.
/// Thread-safe; a heap's lock may be held.
class History {
 public:
  /// Keeps the last `entries`; forgets all when 0.
  void start(size_t entries, bool stacks);
  bool stacks() const noexcept { return stacks_.load(std::memory_order_relaxed); }

  void add(TraceEntry entry);
  void add(TraceEntry::Action action, uintptr_t address, size_t size, const Stream& stream);
  /// A block went on loan; numbers the loan.
  void lend(Chunk& chunk, const Stream& stream);
  /// A block came back; before anything of it changes.
  void give_back(const Chunk& chunk, const Stream& stream);
  void free_completed(const Chunk& chunk, const Stream& stream);

  std::vector<TraceEntry> entries() const;
  /// Of blocks that were on loan at the peak and came back since.
  std::vector<BlockInfo> gone_since_peak() const;
  /// Whether a block that is on loan was so at the peak.
  bool was_at_peak(const Chunk& chunk) const;
  void reset_peak();
  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

 private:
  void push(TraceEntry entry);

  mutable SpinLock lock_;
  std::atomic<bool> stacks_ = false;
  size_t capacity_ = 0;
  std::deque<TraceEntry> entries_;
  uint64_t sequence_ = 0;
  uint64_t started_ = 0;  ///< the sequence number at `start`
  uint64_t peak_sequence_ = 0;
  int64_t bytes_ = 0;  ///< on loan since `start`
  int64_t peak_bytes_ = 0;
  std::vector<BlockInfo> gone_since_peak_;
};

}  // namespace lockstep
