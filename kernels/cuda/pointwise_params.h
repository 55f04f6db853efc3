#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
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

/// Operands of one floating dtype whose elements lie as the result's do, one after the other, all
/// of them or row by row; or which have one element for all, or one for each row.
struct DensePointwise {
  static constexpr int kMaxRank = 6;

  PointwiseOperands operands;
  int64_t numel;
  bool is_single[PointwiseOperands::kMost];  ///< one element for all
  // Where there are rows, of whole packs of 16 bytes: fewer than 2^31 packs.
  bool repeats[PointwiseOperands::kMost];  ///< one element for each row
  int32_t rank;                            ///< of the rows; 0: all elements are one row
  Divider row;                             ///< packs in one
  Divider sizes[kMaxRank];                 ///< [0] is the innermost
  int64_t strides[PointwiseOperands::kMost][kMaxRank];  ///< in bytes
};
/// Elements that a thread of the kernels for these makes at a time.
constexpr int64_t dense_elements_of_thread(DType dtype) {
  constexpr int64_t kPacks = 2;
  return kPacks * 16 / static_cast<int64_t>(size_of(dtype));
}

}  // namespace lockstep::cuda
