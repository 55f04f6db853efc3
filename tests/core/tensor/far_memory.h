#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Memory of a device that the CPU cannot address. It returns a real address shifted to a
/// non-canonical one, so that a direct access crashes. Fresh memory holds NaNs.
class FarMemory final : public Allocator {
 public:
  Block allocate(size_t bytes, const Stream&) override {
    if (bytes == 0) return {nullptr, 0, nullptr, this};
    const size_t rounded = (bytes + 511) / 512 * 512;
    void* memory = std::aligned_alloc(512, rounded);
    if (memory == nullptr) throw OutOfMemoryError("[far] no memory left");
    std::memset(memory, 0xff, rounded);
    blocks_.fetch_add(1);
    return {moved(memory, kDistance), rounded, nullptr, this};
  }
  void free(const Block& block) noexcept override {
    if (block.data == nullptr) return;
    std::free(near(block.data));
    blocks_.fetch_sub(1);
  }
  void record_stream(const Block&, const Stream&) override {}
  void copy(void* to, const void* from, size_t bytes, Transfer direction) override {
    std::memcpy(direction == Transfer::kToCpu ? to : near(to),
                direction == Transfer::kFromCpu ? from : near(from), bytes);
    transfers_.fetch_add(1);
  }
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}

  /// Number of live blocks.
  int blocks() const { return blocks_.load(); }
  int transfers() const { return transfers_.load(); }

  /// The real address of the bytes, for the device's own kernels.
  static void* near(const void* address) { return moved(address, -kDistance); }

 private:
  // On x86-64, an address with bit 62 set and bit 63 clear is not canonical.
  static constexpr intptr_t kDistance = intptr_t{1} << 62;
  static void* moved(const void* address, intptr_t distance) {
    return reinterpret_cast<void*>(reinterpret_cast<intptr_t>(address) + distance);
  }

  std::atomic<int> blocks_{0};
  std::atomic<int> transfers_{0};
};

}  // namespace lockstep
