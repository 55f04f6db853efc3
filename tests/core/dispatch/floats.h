#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/core/tensor/places.h"

namespace lockstep {

using Floats = std::vector<float>;

/// A float32 vector on the CPU, made without operators.
inline Tensor vec(std::initializer_list<float> values) {
  const Tensor t = empty_tensor({static_cast<int64_t>(values.size())}, DType::kF32);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}

/// The elements of a float32 tensor on the CPU in row-major order, for any strides.
inline Floats floats(const Tensor& t) {
  Floats all;
  for (const int64_t place : places(t.sizes(), t.strides())) all.push_back(t.data<float>()[place]);
  return all;
}

}  // namespace lockstep
