#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/spin_lock.h"
#include "core/memory/stats.h"

namespace lockstep {

/// Number of counters of blocks that are kept for each pool: blocks, bytes, requested bytes, active
/// blocks, active bytes, in this order.
inline constexpr size_t kQuantities = 5;
/// Number of pool kinds: small, large, and both together.
inline constexpr size_t kPoolKinds = 3;

/// A value for each quantity of each pool.
using QuantityTable = std::array<std::array<int64_t, kQuantities>, kPoolKinds>;

/// Counters of one heap's blocks. Guarded by the heap's lock.
class HeapCounts {
 public:
  void add(size_t bytes, size_t requested, bool small) noexcept {
    const size_t pool = small ? 0 : 1;
    // One combined branch, which a repeated step never takes.
    const unsigned raised = blocks_.add(1, pool) | bytes_.add(static_cast<int64_t>(bytes), pool) |
                            requested_.add(static_cast<int64_t>(requested), pool);
    if ((raised | static_cast<unsigned>(pending_ != 0)) != 0) [[unlikely]]
      raise_peaks();
  }
  void remove(size_t bytes, size_t requested, bool small) noexcept {
    const size_t pool = small ? 0 : 1;
    blocks_.remove(1, pool);
    bytes_.remove(static_cast<int64_t>(bytes), pool);
    requested_.remove(static_cast<int64_t>(requested), pool);
  }
  /// Counts a block that was freed and stays active until `remove_pending`.
  void add_pending(size_t bytes, bool small) noexcept { change_pending(1, bytes, small); }
  void remove_pending(size_t bytes, bool small) noexcept { change_pending(-1, bytes, small); }

  int64_t blocks() const noexcept { return blocks_.now(); }
  int64_t bytes() const noexcept { return bytes_.now(); }
  int64_t requested() const noexcept { return requested_.now(); }
  /// The highest value of `requested` so far.
  int64_t most_requested() const noexcept { return most_requested_ever_; }
  /// Resets the unpublished change without publishing it, for when nobody reads the totals.
  static void defer(HeapCounts& counts) noexcept { counts.published_bytes_ = counts.bytes(); }

  QuantityTable current() const noexcept;
  QuantityTable freed() const noexcept;

 private:
  friend class DeviceCounts;
  /// One quantity, for the small and the large pool.
  struct Count {
    struct Pool {
      int64_t now = 0;
      int64_t most = 0;  ///< highest value since the last publication, as of the last `raise_peaks`
      int64_t freed = 0;
    };
    std::array<Pool, 2> pools{};
    int64_t most = 0;  ///< highest sum of both pools

    /// Returns 1 if a peak must be raised, else 0.
    unsigned add(int64_t change, size_t pool) noexcept {
      const int64_t sum = pools[pool].now += change;
      return static_cast<unsigned>(sum > pools[pool].most) |
             static_cast<unsigned>(sum + pools[1 - pool].now > most);
    }
    void remove(int64_t change, size_t pool) noexcept {
      pools[pool].now -= change;
      pools[pool].freed += change;
    }
    int64_t now() const noexcept { return pools[0].now + pools[1].now; }
  };

  void change_pending(int64_t sign, size_t bytes, bool small) noexcept;
  void raise_peaks() noexcept;
  void start_peaks(const QuantityTable& peak) noexcept;

  Count blocks_;
  Count bytes_;
  Count requested_;
  std::array<int64_t, 2> pending_blocks_{};
  std::array<int64_t, 2> pending_bytes_{};
  int64_t pending_ = 0;  ///< blocks
  int64_t published_bytes_ = 0;
  int64_t most_requested_ever_ = 0;
  QuantityTable peak_{};  ///< since the last publication
  QuantityTable published_{};
  QuantityTable published_freed_{};
};

/// Totals over all heaps of a device, and its segments and reserved bytes. Thread-safe.
class DeviceCounts {
 public:
  /// Change in bytes after which a heap publishes, if there are several heaps. Bounds the error of
  /// the device's peak without taking the shared lock at each call.
  static constexpr int64_t kUnpublished = 64 * 1024;

  static bool is_due(const HeapCounts& heap) noexcept {
    const int64_t change = heap.bytes() - heap.published_bytes_;
    return change > kUnpublished || change < -kUnpublished;
  }
  /// Adds a heap's changes since its last publication. Call under the heap's lock.
  void publish(HeapCounts& heap);

  /// Adds bytes obtained from the driver for one pool; negative for bytes returned.
  void add_reserved(int64_t bytes, bool small);
  void add_segments(int64_t count, bool small);
  /// Fills the counters into `stats`, as of the last publications.
  void fill(DeviceMemoryStats& stats) const;
  int64_t reserved() const;
  void reset_peaks();
  void lock() LS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() LS_RELEASE(lock_) { lock_.unlock(); }

 private:
  struct Tally {
    Stat all, small_pool, large_pool;
    void add(int64_t change, bool small);
  };

  mutable SpinLock lock_;
  QuantityTable current_ LS_GUARDED_BY(lock_){};
  QuantityTable peak_ LS_GUARDED_BY(lock_){};
  QuantityTable freed_ LS_GUARDED_BY(lock_){};
  Tally reserved_ LS_GUARDED_BY(lock_);
  Tally segments_ LS_GUARDED_BY(lock_);
};

}  // namespace lockstep
