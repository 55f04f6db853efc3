#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// What of a tensor is left within `out` when it is padded, or cropped where a pad is negative.
struct PadOverlap {
  Dims lengths;      ///< by dimension
  int64_t to = 0;    ///< where it begins in `out`, in elements
  int64_t from = 0;  ///< and in the tensor

  /// `pad` has two numbers for each padded dimension, the last dimension's first.
  PadOverlap(const Out& out, const In& self, IntList pad);
  /// Whether nothing is left.
  bool is_empty() const { return is_empty_; }

 private:
  bool is_empty_ = false;
};

}  // namespace lockstep
