#pragma once

#include <cstddef>

#include "core/free_list.h"
#include "core/spin_lock.h"

namespace lockstep {

/// The `cpu` allocator: best fit over one large address range that is mapped once and grows page
/// by page as it is first touched. Freed neighbours join. Memory that was touched is never given
/// back, because the first touch of a page costs many times what a second write does; so a
/// training step whose shapes repeat makes no system call for memory.
///
/// Thread-safe (one lock).
class FreeListAllocator final : public Allocator {
 public:
  /// `capacity`: bytes of address space to reserve. Throws OutOfMemoryError when refused.
  explicit FreeListAllocator(size_t capacity);
  ~FreeListAllocator() override;
  FreeListAllocator(const FreeListAllocator&) = delete;
  FreeListAllocator& operator=(const FreeListAllocator&) = delete;

  Block allocate(size_t bytes, const Stream& stream) override;
  void free(const Block& block) noexcept override;
  void record_stream(const Block& block, const Stream& stream) override;
  MemoryStats stats() const override;
  void reset_peak() override;

  /// Around fork(): no other thread holds the lock in the child then.
  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

 private:
  mutable SpinLock lock_;
  size_t capacity_;
  void* range_ = nullptr;      ///< the whole mapping
  std::byte* base_ = nullptr;  ///< its first huge page
  FreeList list_;
};

}  // namespace lockstep
