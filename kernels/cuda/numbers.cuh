#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/numbers.h"

namespace lockstep::cuda {

/// Element i, or `otherwise` if the vector is null.
__device__ inline double number_at(const Numbers& numbers, int64_t i, double otherwise) {
  if (numbers.data == nullptr) return otherwise;
  const int64_t bytes = element_size(numbers.dtype);
  return load_as<double>(numbers.dtype, static_cast<const char*>(numbers.data) + i * bytes);
}
/// Stores element i; does nothing if the vector is null.
__device__ inline void store_number(const Numbers& numbers, int64_t i, double value) {
  if (numbers.data == nullptr) return;
  const int64_t bytes = element_size(numbers.dtype);
  store_as<double>(numbers.dtype, static_cast<char*>(numbers.data) + i * bytes, value);
}

}  // namespace lockstep::cuda
