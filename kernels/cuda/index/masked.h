#pragma once

#include "core/cuda/fault.h"
#include "core/tensor/dtype.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Finds the elements of a tensor that are not 0: blocks count those of their chunks, one block
/// adds the counts up, and blocks write the elements' numbers, in order.
struct FindChosen {
  static constexpr int64_t kChunk = 2048;

  const void* mask;
  DType dtype;
  int64_t count;  ///< elements looked at, row by row
  int64_t chunks;
  Walk<1> walk;  ///< of each: where in the mask
  int64_t* chunk_starts;
  int64_t* chosen;  ///< the elements' numbers, as many as there are
  int64_t* num_chosen;
};

/// to[i] = the coordinates of element chosen[i].
struct WriteCoordinates {
  static constexpr int kMaxRank = 64;

  const int64_t* chosen;
  int64_t* to;
  int64_t count;
  int32_t rank;
  AnyDivider sizes[kMaxRank];
};

/// to[i] = from[chosen[i]].
struct ReadChosen {
  const int64_t* chosen;
  const void* from;
  void* to;
  int64_t count;
  Walk<1> walk;  ///< of each element: where in from
};

/// to[chosen[i]] = from[i].
struct WriteChosen {
  const int64_t* chosen;
  const int64_t* num_chosen;
  const void* from;
  void* to;
  int64_t count;  ///< elements of from; noted where they are too few
  Fault* fault;
};

/// Writes 1 where two tensors differ.
struct Compare {
  const void* a;
  const void* b;
  DType dtype;
  int64_t count;
  Walk<2> walk;
  uint32_t* differs;
};

}  // namespace lockstep::cuda
