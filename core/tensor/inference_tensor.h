#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

namespace detail {
[[noreturn]] void refuse_inference_write(std::string_view op, const Tensor& tensor);
}  // namespace detail

/// Throws AutogradError naming `op` if `tensor` was made in inference mode and is written outside
/// it: autograd saved no version of it that a write could invalidate.
inline void check_inference_write(std::string_view op, const Tensor& tensor) {
  if (tensor.is_inference() && !detail::inference_mode) detail::refuse_inference_write(op, tensor);
}

}  // namespace lockstep
