#pragma once

#include <lockstep/lockstep.h>

#include <atomic>

namespace vault {

/// Memory of the simulated device. As with a real device, its addresses are invalid on the cpu:
/// only `copy` and the backend's kernels, through `local`, can access the bytes. Memory is filled
/// with NaNs (0xff) when it is allocated and when it is freed, so that reads of uninitialised or
/// freed memory show up. Thread-safe.
class VaultAllocator final : public lockstep::Allocator {
 public:
  lockstep::Block allocate(size_t bytes, const lockstep::Stream& stream) override;
  void free(const lockstep::Block& block) noexcept override;
  void record_stream(const lockstep::Block&, const lockstep::Stream&) override {}  // one stream
  void copy(void* to, const void* from, size_t bytes, lockstep::Transfer direction) override;
  lockstep::MemoryStats stats() const override;
  void reset_peak() override { peak_ = allocated_.load(); }

  /// Converts a device address to the address of the bytes in this process.
  static void* local(const void* device_address);

 private:
  std::atomic<int64_t> allocated_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace vault
