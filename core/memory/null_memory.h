#pragma once

#include <algorithm>
#include <atomic>

#include "core/device/device_memory.h"

namespace lockstep {

/// The memory of `meta`: an unlimited number of addresses that must not be accessed. An allocator
/// over it makes the same decisions as one over CpuMemory.
class NullMemory final : public DeviceMemory {
 public:
  size_t total() const override { return size_t{1} << 61; }
  size_t available() const override { return total(); }
  size_t block_unit() const override { return 64; }  // as CpuMemory's
  void* allocate(size_t bytes) noexcept override { return next(bytes); }
  void release(void*, size_t) noexcept override {}
  size_t granularity() const override { return size_t{2} << 20; }
  void* reserve(size_t bytes) noexcept override { return next(bytes); }
  void unreserve(void*, size_t) noexcept override {}
  bool create(std::span<Granule> granules) noexcept override {
    std::ranges::fill(granules, Granule{1});
    return true;
  }
  void destroy(std::span<const Granule>) noexcept override {}
  bool map(void*, std::span<const Granule>) noexcept override { return true; }
  void unmap(void*, size_t) noexcept override {}
  void* allocate_pinned(size_t bytes) noexcept override { return next(bytes); }
  void release_pinned(void*, size_t) noexcept override {}

 private:
  /// Ranges are consecutive and wrap around at the end of the address space.
  void* next(size_t bytes) noexcept {
    const size_t taken = (bytes + granularity() - 1) / granularity() * granularity();
    uintptr_t at = next_.load(std::memory_order_relaxed);
    uintptr_t begin;
    do {
      begin = taken > ~uintptr_t{0} - at ? granularity() : at;
    } while (!next_.compare_exchange_weak(at, begin + taken, std::memory_order_relaxed));
    return reinterpret_cast<void*>(begin);
  }

  std::atomic<uintptr_t> next_ = size_t{2} << 20;
};

}  // namespace lockstep
