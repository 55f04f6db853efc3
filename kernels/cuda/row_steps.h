#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

// What the text of a row kernel (row_source.h) is given of an operator's call, besides the rows.

/// Bytes by which rows in shared memory lie as their tensors' rows would: kernels take runs of 16.
inline constexpr int64_t kRowUnit = 16;

struct FoldStep {
  double number;  ///< FoldOptions
  DType dtype;    ///< of the elements
  DType result;
};
struct SoftmaxStep {
  DType result;
  bool log;
};
struct NormStep {
  double eps;
  DType mean;  ///< of the statistics
  DType rstd;
  bool centre;
};

}  // namespace lockstep::cuda
