#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// A tensor beside the rows, not of their dtype.
struct NormVector {
  void* data;  ///< null where absent
  DType dtype;
};

/// What the norms' kernels are launched with. What is absent is null; the norm that does not centre
/// has no mean. Statistics are of the rows' dtype or of the one that is computed in.
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

/// The parameters' gradients are summed over groups of rows, and then over the groups.
struct NormParameters {
  const void* x;
  const void* grad;
  NormVector mean;
  NormVector rstd;
  int64_t rows;
  int64_t n;
  int64_t group;         ///< rows in one
  void* partial_weight;  ///< [groups, n] in the type to compute in; null where not wanted
  void* partial_bias;
};
struct NormParametersJoin {
  const void* partial;
  int64_t groups;
  int64_t n;
  NormVector result;
};

/// Threads of a block that take the same columns, and rows a fixed number apart.
inline constexpr int kNormRowThreads = 8;
/// Rows whose parts of the parameters' gradients one block adds up: few enough that the blocks,
/// each for 32 * `pack` columns, fill a large GPU. The same on every device, since the sums' order
/// depends on it.
constexpr int64_t norm_group(int64_t rows, int64_t n, int64_t pack) {
  const int64_t tiles = std::max<int64_t>(1, (n + 32 * pack - 1) / (32 * pack));
  const int64_t groups = std::max<int64_t>(1, 512 / tiles);
  const int64_t group = (rows + groups - 1) / groups;
  return std::max<int64_t>(32, (group + kNormRowThreads - 1) / kNormRowThreads * kNormRowThreads);
}

}  // namespace lockstep::cuda
