#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// A parameter or statistic, with a dtype of its own.
struct NormVector {
  void* data;  ///< null if not given
  DType dtype;
};

/// Arguments of the layer norm and RMS norm kernels. Absent tensors are null; RMS norm (not
/// `centre`) has no mean. Statistics have the rows' dtype or its compute type.
struct NormRows {
  const void* x;
  void* y;  ///< forward
  const void* grad;
  void* dx;  ///< backward
  const void* weight;
  const void* bias;
  NormVector mean;
  NormVector rstd;
  int64_t rows;
  int64_t n;
  double eps;
  bool centre;
};

/// Gradients of the parameters: summed over groups of rows, then over the groups.
struct NormParameters {
  const void* x;
  const void* grad;
  NormVector mean;
  NormVector rstd;
  int64_t rows;
  int64_t n;
  int64_t group;         ///< rows per group
  void* partial_weight;  ///< [groups, n] in the compute type; null if not wanted
  void* partial_bias;
};
/// Sums over the groups, of the weight's and the bias's gradient in one launch.
struct NormParametersJoin {
  const void* partial[2];
  NormVector result[2];
  int64_t groups;
  int64_t n;
};

/// Threads of a block that share columns; each takes rows a fixed number apart.
inline constexpr int kNormRowThreads = 8;
/// Number of rows whose contributions to the parameters' gradients one block sums: small enough
/// that the blocks, each of 32 * `pack` columns, fill a large GPU (about 512 blocks). The same on
/// every device, since the order of the sums depends on it.
constexpr int64_t norm_group(int64_t rows, int64_t n, int64_t pack) {
  const int64_t tiles = std::max<int64_t>(1, (n + 32 * pack - 1) / (32 * pack));
  const int64_t groups = std::max<int64_t>(1, 512 / tiles);
  const int64_t group = (rows + groups - 1) / groups;
  return std::max<int64_t>(32, (group + kNormRowThreads - 1) / kNormRowThreads * kNormRowThreads);
}

}  // namespace lockstep::cuda
