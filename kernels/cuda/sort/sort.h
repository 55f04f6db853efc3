#pragma once

#include "core/tensor/dtype.h"
#include "kernels/common/sort_keys.h"

namespace lockstep::cuda {

/// Arguments of the kernels that sort the lines of a contiguous tensor, or write some of their
/// elements.
struct Sort {
  /// Number of entries that a block sorts in shared memory.
  static constexpr int64_t kChunk = 2048;
  /// In lines of up to this length, one thread chooses the elements, as on the CPU.
  static constexpr int64_t kShort = 256;

  const void* self;
  void* values;
  int64_t* indices;  ///< may be null
  SortLines lines;
  DType dtype;
  bool descending;

  SortEntry* entries;    ///< `room` per line: sorted, with padding past n at the end
  int64_t room;          ///< a power of two
  int64_t chunk;         ///< the smaller of room and kChunk
  int64_t size, stride;  ///< of a step: sorted runs of `size` entries, compared `stride` apart

  int64_t length;     ///< elements to write per line
  int64_t first;      ///< position of the first of them,
  int64_t* first_of;  ///< or, if not null, that position for each line
  bool skip_nan;
  bool ranked;  ///< sort the chosen elements of a short line
};

/// The smallest power of two that is at least n.
constexpr int64_t sort_room(int64_t n) {
  int64_t room = 1;
  while (room < n) room *= 2;
  return room;
}

}  // namespace lockstep::cuda
