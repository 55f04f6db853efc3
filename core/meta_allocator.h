#pragma once

#include <mutex>

#include "core/free_list.h"

namespace lockstep {

/// The `meta` allocator: counts what the `cpu` allocator would hand out, and hands out nothing.
/// Blocks have no address. The same calls in the same order give the same statistics as
/// FreeListAllocator's, but for the requests made to the system: there are none.
///
/// Thread-safe (one lock).
class MetaAllocator final : public Allocator {
 public:
  Block allocate(size_t bytes, const Stream& stream) override;
  void free(const Block& block) noexcept override;
  void record_stream(const Block& block, const Stream& stream) override;
  MemoryStats stats() const override;
  void reset_peak() override;

 private:
  // No address is ever made, so no machine sets the limit.
  static constexpr size_t kCapacity = size_t{1} << 62;

  mutable std::mutex mutex_;
  FreeList list_{kCapacity};
};

}  // namespace lockstep
