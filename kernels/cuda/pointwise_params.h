#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
#include "kernels/cuda/divider.h"

namespace lockstep::cuda {

/// Arguments of a pointwise kernel. Operand 0 is the result.
struct PointwiseOperands {
  static constexpr int kMost = 4;
  static constexpr int kFunctorBytes = 48;

  char* address[kMost];
  DType dtype[kMost];
  bool is_number[kMost];  ///< the operand is `number`, not memory
  alignas(8) unsigned char number[8];
  alignas(16) unsigned char functor[kFunctorBytes];
};

/// Arguments for operands of any strides and dtypes.
struct StridedPointwise {
  static constexpr int kMaxRank = 24;

  PointwiseOperands operands;
  uint32_t numel;
  int32_t rank;
  Divider sizes[kMaxRank];                              ///< [0] is the innermost
  int64_t strides[PointwiseOperands::kMost][kMaxRank];  ///< in bytes
};

/// Arguments for operands of one floating dtype whose elements have the result's layout, contiguous
/// as a whole or row by row, or which have a single element for all, or one per row.
struct DensePointwise {
  static constexpr int kMaxRank = 6;

  PointwiseOperands operands;
  int64_t numel;
  bool is_single[PointwiseOperands::kMost];  ///< a single element for all
  // If there are rows, they consist of whole 16-byte packs, fewer than 2^31 of them.
  bool repeats[PointwiseOperands::kMost];               ///< one element per row
  int32_t rank;                                         ///< row dimensions; 0: a single row
  Divider row;                                          ///< packs per row
  Divider sizes[kMaxRank];                              ///< [0] is the innermost
  int64_t strides[PointwiseOperands::kMost][kMaxRank];  ///< in bytes
};
/// Elements that a thread of the dense kernels computes at a time.
constexpr int64_t dense_elements_of_thread(DType dtype) {
  constexpr int64_t kPacks = 2;
  return kPacks * 16 / static_cast<int64_t>(size_of(dtype));
}

}  // namespace lockstep::cuda
