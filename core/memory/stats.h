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

/// Counters of a caching allocator, under PyTorch's names. Sizes in bytes. Peaks are exact if one
/// stream allocates; with several streams the total peak may miss up to 64 KiB for each.
struct DeviceMemoryStats {
  PoolStat allocation;            ///< live blocks
  PoolStat segment;               ///< ranges of memory: plain segments, or mapped runs
  PoolStat active;                ///< live blocks, and freed ones that a stream still uses
  PoolStat inactive_split;        ///< free blocks whose neighbours are in use
  PoolStat allocated_bytes;       ///< in live blocks
  PoolStat reserved_bytes;        ///< obtained from the device
  PoolStat active_bytes;          ///< in active blocks
  PoolStat inactive_split_bytes;  ///< "non-releasable": free, but with neighbours in use
  PoolStat requested_bytes;       ///< requested sizes, before rounding

  int64_t num_alloc_retries = 0;     ///< allocations that first had to release cached memory
  int64_t num_ooms = 0;              ///< OutOfMemoryErrors thrown
  int64_t num_sync_all_streams = 0;  ///< times an allocation waited for the device
  int64_t num_device_alloc = 0;      ///< driver calls that obtain memory: allocate, create, map
  int64_t num_device_free = 0;       ///< driver calls that return memory: release, unmap, destroy
  int64_t num_stitched = 0;          ///< allocations served by moving granules
  int64_t num_stream_waits = 0;      ///< times a stream had to wait for another at reuse
  int64_t max_split_size = -1;       ///< bytes; -1: unlimited
  int64_t planned_peak_bytes = 0;    ///< of the plan in use; 0 without one
  int64_t planned_lower_bound = 0;   ///< minimum for any plan: peak of live bytes

  friend bool operator==(const DeviceMemoryStats&, const DeviceMemoryStats&) = default;
};

/// Flat form, "allocated_bytes.all.current" -> value, like torch.cuda.memory_stats().
std::map<std::string, int64_t> flatten(const DeviceMemoryStats& stats);
/// A table in the form of torch.cuda.memory_summary(): current, peak, total allocated and freed.
std::string memory_summary(const DeviceMemoryStats& stats, Device device);

}  // namespace lockstep
