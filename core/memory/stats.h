#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/tensor/device.h"

namespace lockstep {

/// One quantity over time.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;       ///< highest `current` since the last reset
  int64_t allocated = 0;  ///< sum of all increases
  int64_t freed = 0;      ///< sum of all decreases

  friend bool operator==(const Stat&, const Stat&) = default;
};

/// A quantity of the small pool (blocks of up to 1 MiB), of the large one, and of both.
struct PoolStat {
  Stat all;
  Stat small_pool;
  Stat large_pool;

  friend bool operator==(const PoolStat&, const PoolStat&) = default;
};

/// What a caching allocator counts, under PyTorch's names. Sizes in bytes. Peaks are exact where
/// one stream allocates; where several do, the peak over all of them may miss up to 64 KiB for
/// each.
struct DeviceMemoryStats {
  PoolStat allocation;            ///< blocks on loan
  PoolStat segment;               ///< ranges of memory: plain segments, or mapped runs
  PoolStat active;                ///< blocks on loan, or given back while a stream uses them
  PoolStat inactive_split;        ///< free blocks whose neighbours are not
  PoolStat allocated_bytes;       ///< in blocks on loan
  PoolStat reserved_bytes;        ///< taken from the device
  PoolStat active_bytes;          ///< in active blocks
  PoolStat inactive_split_bytes;  ///< "non-releasable": free, but in use nearby
  PoolStat requested_bytes;       ///< as asked for, before rounding

  int64_t num_alloc_retries = 0;     ///< allocations that succeeded only after cached memory went
  int64_t num_ooms = 0;              ///< OutOfMemoryErrors thrown
  int64_t num_sync_all_streams = 0;  ///< times an allocation waited for the device
  int64_t num_device_alloc = 0;      ///< driver calls that take memory: allocate, create, map
  int64_t num_device_free = 0;       ///< driver calls that give it back: release, unmap, destroy
  int64_t num_stitched = 0;          ///< allocations served by moving granules
  int64_t num_stream_waits = 0;      ///< times a stream was made to wait for another, at reuse
  int64_t max_split_size = -1;       ///< bytes; -1: unlimited
  int64_t planned_peak_bytes = 0;    ///< of the plan in use; 0 without one
  int64_t planned_lower_bound = 0;   ///< the most that any plan needs: live bytes at their peak

  friend bool operator==(const DeviceMemoryStats&, const DeviceMemoryStats&) = default;
};

/// "allocated_bytes.all.current" -> value, as torch.cuda.memory_stats() has it.
std::map<std::string, int64_t> flatten(const DeviceMemoryStats& stats);
/// A table in the form of torch.cuda.memory_summary(): current, peak, total allocated and freed.
std::string memory_summary(const DeviceMemoryStats& stats, Device device);

}  // namespace lockstep
