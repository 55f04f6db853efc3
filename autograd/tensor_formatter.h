#pragma once

#include <fmt/format.h>

#include "autograd/tensor_text.h"

/// fmt::print("{}", tensor) prints format_tensor(tensor) (autograd/tensor_text.h).
template <>
struct fmt::formatter<lockstep::Tensor> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const lockstep::Tensor& tensor, Context& context) const {
    return fmt::formatter<std::string_view>::format(lockstep::format_tensor(tensor), context);
  }
};
