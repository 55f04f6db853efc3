#include "core/ops/pointwise/pointwise_rules.h"

#include "core/base/check.h"
#include "core/ops/pointwise/pointwise_checks.h"
#include "core/ops/pointwise/pointwise_layout.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/pointwise/unary_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep::rules {

namespace {

Outputs binary(std::string_view op, const Tensor& self, const Tensor& other) {
  return pointwise_result(op, result_type(self, other), {&self, &other});
}

/// Both operands in their common dtype; the result is bool.
Outputs comparison(std::string_view op, const Tensor& self, const Tensor& other) {
  Outputs outputs = pointwise_result(op, DType::kBool, {&self, &other});
  if (self.dtype() != other.dtype()) outputs.compute = result_type(self, other);
  return outputs;
}

void check_approximate(std::string_view op, std::string_view approximate) {
  LS_CHECK(approximate == "none" || approximate == "tanh", Error,
           "[{}] unknown approximation: expected \"none\" or \"tanh\", got \"{}\".", op,
           approximate);
}

}  // namespace

Outputs add(const Tensor& self, const Tensor& other, Scalar alpha) {
  Outputs outputs = binary("add", self, other);
  check_alpha("add", outputs.specs[0].dtype, alpha);
  return outputs;
}

Outputs sub(const Tensor& self, const Tensor& other, Scalar alpha) {
  refuse_bool("sub", self, "logical_not() inverts a mask.");
  refuse_bool("sub", other, "logical_not() inverts a mask.");
  Outputs outputs = binary("sub", self, other);
  check_alpha("sub", outputs.specs[0].dtype, alpha);
  return outputs;
}

Outputs add_number(const Tensor& self, Scalar other, Scalar alpha) {
  const DType dtype = result_type(self, other);
  check_alpha("add", dtype, alpha);
  return unary(dtype, self);
}

Outputs sub_number(const Tensor& self, Scalar other, Scalar alpha) {
  refuse_bool("sub", self, "logical_not() inverts a mask.");
  const DType dtype = result_type(self, other);
  check_alpha("sub", dtype, alpha);
  return unary(dtype, self);
}

Outputs mul(const Tensor& self, const Tensor& other) { return binary("mul", self, other); }
Outputs mul_number(const Tensor& self, Scalar other) {
  return unary(result_type(self, other), self);
}
Outputs div(const Tensor& self, const Tensor& other) {
  return pointwise_result("div", to_floating(result_type(self, other)), {&self, &other});
}
Outputs div_number(const Tensor& self, Scalar other) {
  return unary(to_floating(result_type(self, other)), self);
}
Outputs maximum(const Tensor& self, const Tensor& other) { return binary("maximum", self, other); }
Outputs minimum(const Tensor& self, const Tensor& other) { return binary("minimum", self, other); }

Outputs pow(const Tensor& self, Scalar exponent) {
  const DType dtype = result_type(self, exponent);
  LS_CHECK(is_floating(dtype) || exponent.to_int() >= 0, Error,
           "[pow] integers cannot be raised to a negative integer: got {} and {}. Cast to a "
           "floating dtype.",
           to_string(self), to_string(exponent));
  return unary(dtype, self);
}

Outputs neg(const Tensor& self) {
  refuse_bool("neg", self, "logical_not() inverts a mask.");
  return unary(self.dtype(), self);
}
Outputs abs(const Tensor& self) {
  refuse_bool("abs", self, "Cast it with to(dtype).");
  return unary(self.dtype(), self);
}
Outputs square(const Tensor& self) { return unary(result_type(self, 2), self); }
Outputs sign(const Tensor& self) { return unary(self.dtype(), self); }
Outputs relu(const Tensor& self) {
  refuse_bool("relu", self, "Cast it with to(dtype).");
  return unary(self.dtype(), self);
}
Outputs floating_unary(const Tensor& self) { return unary(to_floating(self.dtype()), self); }
Outputs gelu(const Tensor& self, std::string_view approximate) {
  check_approximate("gelu", approximate);
  require_floating("gelu", self);
  return unary(self.dtype(), self);
}
Outputs silu(const Tensor& self) {
  require_floating("silu", self);
  return unary(self.dtype(), self);
}

Outputs gelu_backward(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  check_approximate("gelu_backward", approximate);
  require_floating("gelu_backward", self);
  return binary("gelu_backward", grad, self);
}
Outputs silu_backward(const Tensor& grad, const Tensor& self) {
  require_floating("silu_backward", self);
  return binary("silu_backward", grad, self);
}
Outputs threshold_backward(const Tensor& grad, const Tensor& self, Scalar) {
  return binary("threshold_backward", grad, self);
}
Outputs tanh_backward(const Tensor& grad, const Tensor& output) {
  require_floating("tanh_backward", output);
  return binary("tanh_backward", grad, output);
}
Outputs sigmoid_backward(const Tensor& grad, const Tensor& output) {
  require_floating("sigmoid_backward", output);
  return binary("sigmoid_backward", grad, output);
}

Outputs eq(const Tensor& self, const Tensor& other) { return comparison("eq", self, other); }
Outputs ne(const Tensor& self, const Tensor& other) { return comparison("ne", self, other); }
Outputs lt(const Tensor& self, const Tensor& other) { return comparison("lt", self, other); }
Outputs le(const Tensor& self, const Tensor& other) { return comparison("le", self, other); }
Outputs gt(const Tensor& self, const Tensor& other) { return comparison("gt", self, other); }
Outputs ge(const Tensor& self, const Tensor& other) { return comparison("ge", self, other); }
Outputs number_comparison(const Tensor& self, Scalar other) {
  Outputs outputs = unary(DType::kBool, self);
  const DType common = result_type(self, other);
  if (common != self.dtype()) outputs.compute = common;
  return outputs;
}
Outputs predicate(const Tensor& self) { return unary(DType::kBool, self); }

Outputs where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  LS_CHECK(condition.dtype() == DType::kBool || condition.dtype() == DType::kU8, DTypeError,
           "[where] condition must be a bool tensor, got {}. Compare it: ne(condition, 0).",
           to_string(condition));
  return pointwise_result("where", result_type(self, other), {&condition, &self, &other});
}

Outputs masked_fill(const Tensor& self, const Tensor& mask, Scalar value) {
  check_holds("masked_fill", "value", self.dtype(), value);
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[masked_fill] mask must be a bool tensor, got {}. Compare it: ne(mask, 0).",
           to_string(mask));
  return one(broadcast("masked_fill", self.sizes(), mask.sizes()), self.dtype());
}

}  // namespace lockstep::rules
