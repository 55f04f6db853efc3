#pragma once

#include <initializer_list>

#include "core/tensor/tensor.h"

namespace lockstep {

/// The dtype in which fused norms keep the statistics of `input` for their backward.
inline DType kept_statistics_dtype(const Tensor& input) {
  return input.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
}

/// The dtype of the statistics that norms under ATen's names return: the input's, but f32 for f16
/// and bf16 with an f32 parameter.
inline DType returned_statistics_dtype(const Tensor& input,
                                       std::initializer_list<OptionalTensor> parameters) {
  for (const OptionalTensor& parameter : parameters) {
    if (parameter && parameter->dtype() != input.dtype()) return kept_statistics_dtype(input);
  }
  return input.dtype();
}

/// The dtype of the statistics that batch norms under ATen's names return: as for other norms, but
/// always f32 for f16 and bf16 on GPUs.
inline DType returned_batch_statistics_dtype(const Tensor& input,
                                             std::initializer_list<OptionalTensor> parameters) {
  if (input.device().type == DeviceType::kCUDA) return kept_statistics_dtype(input);
  return returned_statistics_dtype(input, parameters);
}

}  // namespace lockstep
