#pragma once

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Elements that layer norm and root mean square norm take together.
inline int64_t norm_row_length(const In& input, IntList normalized_shape) {
  int64_t n = 1;
  for (size_t i = 0; i < normalized_shape.size(); ++i) n *= input.size(-1 - static_cast<int>(i));
  return n;
}

/// The distance from 1 to the next number: root mean square norm's eps where none is given.
constexpr double machine_epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-52;
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

}  // namespace lockstep
