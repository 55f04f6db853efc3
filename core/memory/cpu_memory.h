#pragma once

#include <atomic>

#include "core/device/device_memory.h"

namespace lockstep {

/// The memory of `cpu`. The system puts memory behind an address when it is first touched, so a
/// granule is a number in the books: to map is free of cost, and to unmap gives the pages back.
/// Ranges are anonymous mappings without reserve, in huge pages where the system has them.
class CpuMemory final : public DeviceMemory {
 public:
  /// `total`: bytes that may be held.
  explicit CpuMemory(size_t total) : total_(total) {}

  size_t total() const override { return total_; }
  size_t available() const override;
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

/// What this process may hold at most: twice the machine's memory, less where `ulimit -v` says so.
size_t cpu_memory_total();

}  // namespace lockstep
