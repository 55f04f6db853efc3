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

void check_factor(std::string_view op, std::string_view what, DType dtype, const Scalar& number) {
  const bool is_half = dtype == DType::kF16 || dtype == DType::kBF16;
  check_holds(op, what, is_half ? DType::kF32 : dtype, number);
}

void check_alpha(std::string_view op, DType dtype, const Scalar& alpha, std::string_view what) {
  LS_CHECK(is_floating(dtype) || !alpha.is_floating(), DTypeError,
           "[{}] {} must be an integer for operands of {}, got {}.", op, what, to_string(dtype),
           to_string(alpha));
  LS_CHECK(dtype == DType::kBool || alpha.kind() != DType::kBool, DTypeError,
           "[{}] {} must be a number for operands of {}, got {}.", op, what, to_string(dtype),
           to_string(alpha));
  check_holds(op, what, dtype, alpha);
}

}  // namespace lockstep::rules
