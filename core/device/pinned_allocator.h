#pragma once

#include <memory>

#include "core/device/device_memory.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Pinned cpu memory: devices copy from and to it directly, so that the caller need not wait for
/// such a copy. Block sizes are powers of two of at least a page. Freed blocks are kept for the
/// next request of their size, because pinning memory is slow.
///
/// A freed block is reused once the copies that were recorded for it are done; if there are
/// several, the one freed first is taken. Only a request that the system refuses waits for copies.
/// Thread-safe.
class PinnedAllocator final : public Allocator {
 public:
  /// `memory` must outlive it.
  explicit PinnedAllocator(DeviceMemory& memory);
  /// Frees all kept blocks. Blocks still in use leak.
  ~PinnedAllocator() override;
  PinnedAllocator(const PinnedAllocator&) = delete;
  PinnedAllocator& operator=(const PinnedAllocator&) = delete;

  /// The stream is ignored, because the cpu uses the block. Throws OutOfMemoryError.
  Block allocate(size_t bytes, const Stream& stream = {}) override;
  /// Ignores a block that this allocator did not allocate.
  void free(const Block& block) noexcept override;
  void record_stream(const Block& block, const Stream& stream) override;
  void record_use(const Block& block, const Stream& stream) override;
  MemoryStats stats() const override;
  void reset_peak() override;

  /// Whether the address lies in a live block of this allocator.
  bool owns(const void* address) const;
  /// Like the overload above, for the block that contains `address`. Ignores other memory.
  void record_use(const void* address, const Stream& stream);
  /// Returns the kept blocks to the system, except those that a copy still uses.
  void empty_cache();

  // For fork handlers.
  void lock();
  void unlock();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The device that pins the process's pinned memory: number 0 of the first type whose runtime needs
/// pinned memory and has devices, or else of the first type whose runtime has devices. Throws
/// DeviceError if there is no such type.
Device pinning_device();
/// The process's pinned allocator, over the memory of the device that pinning_device() returned
/// first. Throws what pinning_device() throws.
PinnedAllocator& pinned_allocator();

}  // namespace lockstep
