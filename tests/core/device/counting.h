#pragma once

#include <numeric>

#include "core/tensor/tensor.h"

namespace lockstep {

/// A float32 tensor on the CPU with the elements first, first + 1, ... in row-major order.
inline Tensor counting(IntList sizes, float first = 0) {
  const Tensor tensor = empty_tensor(sizes, DType::kF32);
  std::iota(tensor.data<float>(), tensor.data<float>() + tensor.numel(), first);
  return tensor;
}

}  // namespace lockstep
