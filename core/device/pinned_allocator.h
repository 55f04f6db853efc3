#pragma once

#include <memory>

#include "core/device/device_memory.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Memory of the cpu that devices copy from and to directly, so that such a copy need not be waited
/// for. Blocks are powers of two of at least a page and are kept for the next request of their
/// size: getting such memory from the system takes long.
///
/// A freed block is reused once the copies that were recorded for it are done; of several, the one
/// that was freed first. Nothing ever waits for a copy, except a request that the system refuses.
/// Thread-safe.
class PinnedAllocator final : public Allocator {
 public:
  /// `memory` must outlive it.
  explicit PinnedAllocator(DeviceMemory& memory);
  /// Gives everything back. Blocks that are still on loan are lost.
  ~PinnedAllocator() override;
  PinnedAllocator(const PinnedAllocator&) = delete;
  PinnedAllocator& operator=(const PinnedAllocator&) = delete;

  /// The stream means nothing: the cpu uses the block. Throws OutOfMemoryError.
  Block allocate(size_t bytes, const Stream& stream = {}) override;
  /// A block that is not on loan from here is ignored.
  void free(const Block& block) noexcept override;
  void record_stream(const Block& block, const Stream& stream) override;
  void record_use(const Block& block, const Stream& stream) override;
  MemoryStats stats() const override;
  void reset_peak() override;

  /// Whether the address lies in a block on loan from here.
  bool owns(const void* address) const;
  /// As the function above, for the block that the address lies in. Does nothing for other memory.
  void record_use(const void* address, const Stream& stream);
  /// Gives the kept blocks back to the system, save those that a copy still uses.
  void empty_cache();

  // Around fork().
  void lock();
  void unlock();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The one of this process: over the memory of cuda:0 where there is one, else of host:0. Throws
/// DeviceError where there is neither.
PinnedAllocator& pinned_allocator();

}  // namespace lockstep
