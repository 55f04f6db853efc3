#pragma once

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Number of elements that layer norm and RMS norm normalise together.
inline int64_t norm_row_length(const In& input, IntList normalized_shape) {
  int64_t n = 1;
  for (size_t i = 0; i < normalized_shape.size(); ++i) n *= input.size(-1 - static_cast<int>(i));
  return n;
}

}  // namespace lockstep
