#pragma once

#include <string_view>

#include "core/ops/pointwise/pointwise_checks.h"
#include "core/ops/pointwise/pointwise_layout.h"

namespace lockstep::rules {

/// A result like self, of the given dtype.
inline Outputs unary(DType dtype, const Tensor& self) {
  return pointwise_result("", dtype, {&self});
}

/// A result of self's dtype, which is not bool.
inline Outputs numeric(std::string_view op, const Tensor& self) {
  refuse_bool(op, self, "Cast it with to(dtype).");
  return unary(self.dtype(), self);
}

}  // namespace lockstep::rules
