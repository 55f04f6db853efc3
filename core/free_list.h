#pragma once

#include <array>
#include <cstddef>
#include <map>

#include "core/allocator.h"

namespace lockstep {

/// Where blocks lie in a range of addresses that starts at 0 and grows up to a capacity: the books
/// of an allocator, without any memory. Best fit first; a chunk is split where the rest is worth
/// keeping, and free neighbours join. Small chunks that were given back wait, as they are, for the
/// next request of their size, and join only when the range would have to grow. All sizes are
/// bytes. Not thread-safe.
class FreeList {
 public:
  /// A run of bytes; runs tile the used part of the range and are linked by address.
  struct Chunk {
    size_t begin;  ///< a multiple of 512
    size_t bytes;
    Chunk* previous;
    Chunk* next;
    bool free;                                      ///< and not waiting
    std::multimap<size_t, Chunk*>::iterator place;  ///< in free_, while free
    Chunk* next_waiting;
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
  static constexpr size_t kGranule = 512;  // a multiple of every vector and line size
  static constexpr size_t kLargestWaiting = 64 * 1024;

  /// The chunks of exactly `bytes` that wait, newest first.
  Chunk*& waiting(size_t bytes) { return waiting_[bytes / kGranule]; }
  /// Ends every wait. False when there was none.
  bool join_waiting() noexcept;
  void set_free(Chunk* chunk) noexcept;
  void insert_free(Chunk* chunk);
  Chunk* find(size_t bytes);
  Chunk* join(Chunk* left, Chunk* right) noexcept;
  Chunk* extend(size_t bytes);
  Chunk* new_chunk();

  size_t capacity_;
  size_t used_ = 0;                     ///< high-water mark of the range
  Chunk* last_ = nullptr;               ///< chunk that ends at the mark
  Chunk* spare_ = nullptr;              ///< recycled chunk records, linked by `next`
  std::multimap<size_t, Chunk*> free_;  ///< by size, equal sizes in order of return
  std::array<Chunk*, kLargestWaiting / kGranule + 1> waiting_{};
  MemoryStats stats_;
};

}  // namespace lockstep
