#pragma once

#include <cstddef>
#include <map>

#include "core/allocator.h"

namespace lockstep {

/// Where blocks lie in a range of addresses that starts at 0 and grows up to a capacity: the books
/// of an allocator, without any memory. Best fit first; a chunk is split where the rest is worth
/// keeping, and free neighbours join. All sizes are bytes. Not thread-safe.
class FreeList {
 public:
  /// A run of bytes; runs tile the used part of the range and are linked by address.
  struct Chunk {
    size_t begin;  ///< a multiple of 512
    size_t bytes;
    Chunk* previous;
    Chunk* next;
    bool free;
    std::multimap<size_t, Chunk*>::iterator place;  ///< in free_, while free
  };

  explicit FreeList(size_t capacity) : capacity_(capacity) {}
  ~FreeList();
  FreeList(const FreeList&) = delete;
  FreeList& operator=(const FreeList&) = delete;

  /// At least `bytes` (> 0), a multiple of 512. Valid until it is given back. Throws
  /// OutOfMemoryError when the range is used up; the list stays usable.
  Chunk* take(size_t bytes);
  void give_back(Chunk* chunk) noexcept;

  /// `reserved` is the part of the range that was ever used; no system call is counted.
  MemoryStats stats() const;
  void reset_peak() { stats_.peak_allocated = stats_.allocated; }

 private:
  void insert_free(Chunk* chunk);
  Chunk* join(Chunk* left, Chunk* right) noexcept;
  Chunk* extend(size_t bytes);
  Chunk* new_chunk();

  size_t capacity_;
  size_t used_ = 0;                     ///< high-water mark of the range
  Chunk* last_ = nullptr;               ///< chunk that ends at the mark
  Chunk* spare_ = nullptr;              ///< recycled chunk records, linked by `next`
  std::multimap<size_t, Chunk*> free_;  ///< by size, equal sizes in order of return
  MemoryStats stats_;
};

}  // namespace lockstep
