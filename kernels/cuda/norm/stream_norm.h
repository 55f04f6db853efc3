#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"
#include "kernels/cuda/norm/norm.h"

namespace lockstep::cuda {

/// Arguments of the forward kernels of stream_norm and stream_sum_norm. Stream, sum, parameters and
/// statistics are f32, or all are f64. Absent tensors are null.
struct StreamNormRows {
  const void* x;
  const void* branch;
  void* sum;  ///< x + branch
  void* y;
  const void* weight;
  const void* bias;
  NormVector mean;
  NormVector rstd;
  DType branch_dtype;
  DType y_dtype;
  int64_t rows;
  int64_t n;
  double eps;
  bool centre;
};

/// Arguments of the backward kernels: one pass computes dx and the parameters' partial sums over
/// groups of rows, one group per block.
struct StreamNormBackward {
  const void* grad;
  const void* carried;  ///< added to dx; may be null
  const void* x;
  const void* weight;
  NormVector mean;
  NormVector rstd;
  void* dx;
  void* narrow;          ///< dx again, in narrow_dtype
  void* partial_weight;  ///< [groups, n]; null if not wanted
  void* partial_bias;
  DType grad_dtype;
  DType narrow_dtype;
  int64_t rows;
  int64_t n;
  int64_t group;  ///< rows per group
  bool centre;
};

/// Rows per group, a multiple of `rows_of_block`: about four groups for each processor of a large
/// GPU where a block has one row, and two where a warp has. The same on every device, since the
/// order of the sums depends on it.
constexpr int64_t stream_norm_group(int64_t rows, int64_t rows_of_block) {
  const int64_t groups = rows_of_block > 1 ? 264 : 528;
  const int64_t group = std::max<int64_t>(1, (rows + groups - 1) / groups);
  return (group + rows_of_block - 1) / rows_of_block * rows_of_block;
}

}  // namespace lockstep::cuda
