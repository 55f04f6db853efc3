#include "core/ops/pointwise/pointwise_checks.h"

#include "core/base/check.h"
#include "core/tensor/number_range.h"

namespace lockstep::rules {

void refuse_bool(std::string_view op, const Tensor& tensor, std::string_view instead) {
  LS_CHECK(tensor.dtype() != DType::kBool, DTypeError,
           "[{}] a bool tensor is not accepted: expected numbers, got {}. {}", op,
           to_string(tensor), instead);
}

void require_floating(std::string_view op, const Tensor& tensor) {
  LS_CHECK(is_floating(tensor.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", op,
           to_string(tensor));
}

void check_alpha(std::string_view op, DType dtype, const Scalar& alpha) {
  LS_CHECK(is_floating(dtype) || !alpha.is_floating(), DTypeError,
           "[{}] alpha must be an integer for operands of {}, got {}.", op, to_string(dtype),
           to_string(alpha));
  check_holds(op, "alpha", dtype, alpha);
}

}  // namespace lockstep::rules
