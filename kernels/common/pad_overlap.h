#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// The part of a tensor that remains within `out` after padding, or after cropping where a pad is
/// negative.
struct PadOverlap {
  Dims lengths;      ///< size of the part in each dimension
  int64_t to = 0;    ///< where the part starts in `out`, in elements
  int64_t from = 0;  ///< where the part starts in the tensor, in elements

  /// `pad` has two numbers per padded dimension, starting with the last dimension.
  PadOverlap(const Out& out, const In& self, IntList pad);
  /// True if no element of the tensor remains.
  bool is_empty() const { return is_empty_; }

 private:
  bool is_empty_ = false;
};

}  // namespace lockstep
