#pragma once

#include "core/tensor/dtype.h"
#include "kernels/common/sort_keys.h"

namespace lockstep::cuda {

/// Sorts the lines of a contiguous tensor, or writes some of their sorted elements.
struct Sort {
  /// Entries that a block sorts in its shared memory.
  static constexpr int64_t kChunk = 2048;
  /// Lines up to here have their elements chosen by one thread, as on the cpu.
  static constexpr int64_t kShort = 256;

  const void* self;
  void* values;
  int64_t* indices;  ///< null for none
  SortLines lines;
  DType dtype;
  bool descending;

  SortEntry* entries;    ///< `room` for each line: sorted, those beyond its n last
  int64_t room;          ///< a power of two
  int64_t chunk;         ///< the smaller of room and kChunk
  int64_t size, stride;  ///< of a step: runs of `size` entries, compared `stride` apart

  int64_t length;     ///< elements of a line to write, from
  int64_t first;      ///< this one on, or from
  int64_t* first_of;  ///< that of each line
  bool skip_nan;
  bool ranked;  ///< whether the elements of a short line are to be in order
};

/// The least power of two from n on.
constexpr int64_t sort_room(int64_t n) {
  int64_t room = 1;
  while (room < n) room *= 2;
  return room;
}

}  // namespace lockstep::cuda
