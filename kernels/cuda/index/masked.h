#pragma once

#include "core/cuda/fault.h"
#include "core/tensor/dtype.h"
#include "kernels/cuda/walk.h"

namespace lockstep::cuda {

/// Finds the nonzero elements of a tensor: blocks count those of their chunks, one block computes
/// the prefix sums of the counts, and blocks write the elements' indices, in order.
struct FindChosen {
  static constexpr int64_t kChunk = 2048;

  const void* mask;
  DType dtype;
  int64_t count;  ///< elements examined, in row-major order
  int64_t chunks;
  Walk<1> walk;  ///< offset of each element in the mask
  int64_t* chunk_starts;
  int64_t* chosen;  ///< indices of the elements found
  int64_t* num_chosen;
};

/// to[i] = coordinates of element chosen[i].
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
  Walk<1> walk;  ///< offset of each element in from
};

/// to[chosen[i]] = from[i].
struct WriteChosen {
  const int64_t* chosen;
  const int64_t* num_chosen;
  const void* from;
  void* to;
  int64_t count;  ///< elements of from; a fault is recorded if they are too few
  Fault* fault;
};

/// Sets a flag to 1 if two tensors differ.
struct Compare {
  const void* a;
  const void* b;
  DType dtype;
  int64_t count;
  Walk<2> walk;
  uint32_t* differs;
};

}  // namespace lockstep::cuda
