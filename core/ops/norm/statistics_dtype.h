#pragma once

#include <initializer_list>

#include "core/tensor/tensor.h"

namespace lockstep {

/// The dtype in which fused norms keep the statistics of `input` for their backward.
inline DType kept_statistics_dtype(const Tensor& input) {
  return input.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
}

/// The dtype of the statistics that norms under ATen's names return: the input's, but f32 for
/// halves with a parameter of f32.
inline DType returned_statistics_dtype(const Tensor& input,
                                       std::initializer_list<OptionalTensor> parameters) {
  for (const OptionalTensor& parameter : parameters) {
    if (parameter && parameter->dtype() != input.dtype()) return kept_statistics_dtype(input);
  }
  return input.dtype();
}

/// The same for batch norms, of which ATen's for GPUs return f32 for all halves.
inline DType returned_batch_statistics_dtype(const Tensor& input,
                                             std::initializer_list<OptionalTensor> parameters) {
  if (input.device().type == DeviceType::kCUDA) return kept_statistics_dtype(input);
  return returned_statistics_dtype(input, parameters);
}

}  // namespace lockstep
