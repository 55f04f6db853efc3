#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "core/allocator.h"

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

  Block allocate(size_t bytes, Stream stream) override;
  void free(const Block& block) noexcept override;
  void record_stream(const Block& block, Stream stream) override;
  MemoryStats stats() const override;
  void reset_peak() override;

 private:
  /// A run of bytes; runs tile the used part of the range and are linked by address.
  struct Chunk {
    std::byte* begin;
    size_t bytes;
    Chunk* previous;
    Chunk* next;
    bool free;
    std::multimap<size_t, Chunk*>::iterator place;  ///< in free_, while free
  };

  void insert_free(Chunk* chunk);
  Chunk* join(Chunk* left, Chunk* right) noexcept;
  Chunk* extend(size_t bytes);
  Chunk* new_chunk();

  mutable std::mutex mutex_;
  void* range_ = nullptr;      ///< the whole mapping
  std::byte* base_ = nullptr;  ///< its first huge page
  size_t capacity_ = 0;
  size_t used_ = 0;                     ///< high-water mark of the range
  Chunk* last_ = nullptr;               ///< chunk that ends at the mark
  Chunk* spare_ = nullptr;              ///< recycled chunk records, linked by `next`
  std::multimap<size_t, Chunk*> free_;  ///< by size, equal sizes in order of return
  MemoryStats stats_;
};

}  // namespace lockstep
