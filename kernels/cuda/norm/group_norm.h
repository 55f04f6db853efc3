#pragma once

#include <cstdint>

#include "kernels/cuda/index_splitter.h"
#include "kernels/cuda/numbers.h"

namespace lockstep::cuda {

/// Arguments of a group norm, forward or backward, over contiguous [samples, channels, positions].
struct GroupNorm {
  const void* input;
  const void* grad_out;  ///< backward
  void* result;          ///< out, or grad_input
  int64_t samples, channels, positions;
  int64_t groups, width;  ///< width: channels per group
  IndexSplitter place;    ///< splits indices within a group into channels
  Numbers mean, root;     ///< [samples, groups]
  Numbers weight, bias;   ///< [channels]
  Numbers grad_weight, grad_bias;
  double* sums;  ///< backward: two per sample and channel
  double eps;
};

}  // namespace lockstep::cuda
