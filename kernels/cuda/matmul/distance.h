#pragma once

#include <cstdint>

#include "kernels/cuda/cutter.h"

namespace lockstep::cuda {

/// Distances between the rows of matrices, which are contiguous.
struct Distance {
  static constexpr int kMostAxes = 32;

  const void* first;
  const void* second;
  void* out;
  int64_t numel;  ///< of `out`
  int64_t rows, columns, width;
  double p;
  Cutter matrix, row;  ///< cut results into matrices, and these into rows
  /// The leading dimensions: sizes of the result's, strides of the arguments', in matrices.
  int rank;
  int64_t sizes[kMostAxes], first_strides[kMostAxes], second_strides[kMostAxes];
};

}  // namespace lockstep::cuda
