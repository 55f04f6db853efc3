#pragma once

#include <atomic>

#include "core/device/device_memory.h"

namespace lockstep {

/// The memory of `cpu`. The system backs an address with memory on first touch, so a granule is
/// only a number in our accounting: `map` costs nothing, and `unmap` returns the pages. Ranges are
/// anonymous MAP_NORESERVE mappings, in huge pages where the system has them.
class CpuMemory final : public DeviceMemory {
 public:
  /// `total`: the most bytes that may be allocated.
  explicit CpuMemory(size_t total) : total_(total) {}

  size_t total() const override { return total_; }
  size_t available() const override;
  /// A cache line, which is also the widest vector.
  size_t block_unit() const override { return 64; }
  void* allocate(size_t bytes) noexcept override;
  void release(void* address, size_t bytes) noexcept override;
  size_t granularity() const override { return size_t{2} << 20; }
  void* reserve(size_t bytes) noexcept override;
  void unreserve(void* address, size_t bytes) noexcept override;
  bool create(std::span<Granule> granules) noexcept override;
  void destroy(std::span<const Granule> granules) noexcept override;
  bool map(void* address, std::span<const Granule> granules) noexcept override;
  void unmap(void* address, size_t bytes) noexcept override;
  void* allocate_pinned(size_t bytes) noexcept override { return allocate(bytes); }
  void release_pinned(void* address, size_t bytes) noexcept override { release(address, bytes); }

 private:
  bool take(size_t bytes) noexcept;

  size_t total_;
  std::atomic<size_t> held_ = 0;  ///< bytes
};

/// Bytes that this process may allocate: twice the machine's memory, or less if `ulimit -v` is
/// lower.
size_t cpu_memory_total();

}  // namespace lockstep
