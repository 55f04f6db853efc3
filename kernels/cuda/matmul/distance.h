#pragma once

#include <cstdint>

#include "kernels/cuda/index_splitter.h"

namespace lockstep::cuda {

/// Arguments of the distances between rows of contiguous matrices.
struct Distance {
  static constexpr int kMostAxes = 32;

  const void* first;
  const void* second;
  void* out;
  int64_t numel;  ///< elements of `out`
  int64_t rows, columns, width;
  double p;
  IndexSplitter matrix, row;  ///< split result indices into matrices, and these into rows
  /// Batch dimensions: sizes of the result, strides of the arguments in matrices.
  int rank;
  int64_t sizes[kMostAxes], first_strides[kMostAxes], second_strides[kMostAxes];
};

}  // namespace lockstep::cuda
