#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/cuda/divider.h"

namespace lockstep::cuda {

/// What a pointwise kernel is launched with. Operand 0 is the result.
struct PointwiseOperands {
  static constexpr int kMost = 4;
  static constexpr int kFunctorBytes = 48;

  char* address[kMost];
  DType dtype[kMost];
  bool is_number[kMost];  ///< one element, in `number` instead of memory
  alignas(8) unsigned char number[8];
  alignas(16) unsigned char functor[kFunctorBytes];
};

/// Operands of any strides and dtypes.
struct StridedPointwise {
  static constexpr int kMaxRank = 24;

  PointwiseOperands operands;
  uint32_t numel;
  int32_t rank;
  Divider sizes[kMaxRank];                              ///< [0] is the innermost
  int64_t strides[PointwiseOperands::kMost][kMaxRank];  ///< in bytes
};

/// Operands that lie as the result does, element after element, or are one element for all.
struct DensePointwise {
  PointwiseOperands operands;
  int64_t numel;
  bool is_single[PointwiseOperands::kMost];
};

}  // namespace lockstep::cuda
