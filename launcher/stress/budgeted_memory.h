#pragma once

#include <atomic>

#include "core/device/device_memory.h"

namespace lockstep {

/// A device's memory limited to a budget, as if the device had no more. Thread-safe.
class BudgetedMemory final : public DeviceMemory {
 public:
  /// `memory` must outlive this object.
  BudgetedMemory(DeviceMemory& memory, size_t budget)
      : memory_(memory), left_(budget), total_(budget) {}

  size_t total() const override { return total_; }
  size_t available() const override { return left_.load(); }
  size_t block_unit() const override { return memory_.block_unit(); }

  void* allocate(size_t bytes) noexcept override;
  void release(void* address, size_t bytes) noexcept override;

  bool maps_twice() const override { return memory_.maps_twice(); }
  size_t granularity() const override { return memory_.granularity(); }
  void* reserve(size_t bytes) noexcept override { return memory_.reserve(bytes); }
  void unreserve(void* address, size_t bytes) noexcept override {
    memory_.unreserve(address, bytes);
  }
  bool create(std::span<Granule> granules) noexcept override;
  void destroy(std::span<const Granule> granules) noexcept override;
  bool map(void* address, std::span<const Granule> granules) noexcept override {
    return memory_.map(address, granules);
  }
  void unmap(void* address, size_t bytes) noexcept override { memory_.unmap(address, bytes); }

  void* allocate_pinned(size_t bytes) noexcept override { return memory_.allocate_pinned(bytes); }
  void release_pinned(void* address, size_t bytes) noexcept override {
    memory_.release_pinned(address, bytes);
  }

 private:
  /// Takes bytes from the budget; returns false if not enough are left.
  bool take(size_t bytes) noexcept;

  DeviceMemory& memory_;
  std::atomic<size_t> left_;
  const size_t total_;
};

}  // namespace lockstep
