#include "core/base/check.h"
#include "core/ops/pointwise/pointwise_checks.h"
#include "core/ops/pointwise/pointwise_layout.h"
#include "core/ops/pointwise/pointwise_math_rules.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/pointwise/unary_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep::rules {

namespace {

Outputs floating(std::string_view op, const Tensor& self) {
  require_floating(op, self);
  return unary(self.dtype(), self);
}
}  // namespace

Outputs elu(const Tensor& self, Scalar, Scalar, Scalar) { return floating("elu", self); }
Outputs elu_backward(const Tensor& grad, Scalar alpha, Scalar, Scalar, bool is_result,
                     const Tensor& self_or_result) {
  require_floating("elu_backward", self_or_result);
  LS_CHECK(!is_result || alpha.to_double() >= 0, Error,
           "[elu_backward] the slope cannot be told from the result when alpha is negative: got "
           "{}. Give elu's argument.",
           to_string(alpha));
  return pointwise_result("elu_backward", result_type(grad, self_or_result),
                          {&grad, &self_or_result});
}
Outputs celu(const Tensor& self, Scalar alpha) {
  LS_CHECK(alpha.to_double() != 0, Error, "[celu] alpha must not be 0.");
  return floating("celu", self);
}
Outputs leaky_relu(const Tensor& self, Scalar) { return floating("leaky_relu", self); }
Outputs prelu(const Tensor& self, const Tensor& weight) {
  LS_CHECK(self.dtype() == weight.dtype(), DTypeError,
           "[prelu] dtypes differ: got {} and a weight of {}. Cast one with to(dtype).",
           to_string(self), to_string(weight));
  LS_CHECK(weight.dim() <= 1 || weight.numel() == 1, ShapeError,
           "[prelu] expected a weight of one dimension or none, got shape {}.", weight.shape());
  if (weight.numel() != 1) {
    const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
    LS_CHECK(self.dim() > 0 && weight.numel() == channels, ShapeError,
             "[prelu] expected one weight or one for each channel, got {} weights for shape {} "
             "with {} channels.",
             weight.numel(), self.shape(), self.dim() > 0 ? channels : 0);
  }
  return floating("prelu", self);
}
Outputs prelu_kernel(const Tensor& self, const Tensor& weight) {
  require_floating("_prelu_kernel", self);
  return pointwise_result("_prelu_kernel", self.dtype(), {&self, &weight});
}
Outputs hardtanh(const Tensor& self, Scalar min, Scalar max) {
  check_holds("hardtanh", "min_val", self.dtype(), min);
  check_holds("hardtanh", "max_val", self.dtype(), max);
  return numeric("hardtanh", self);
}
Outputs threshold(const Tensor& self, Scalar threshold, Scalar value) {
  check_holds("threshold", "threshold", self.dtype(), threshold);
  check_holds("threshold", "value", self.dtype(), value);
  return numeric("threshold", self);
}
Outputs hardshrink(const Tensor& self, Scalar) { return floating("hardshrink", self); }
Outputs softshrink(const Tensor& self, Scalar lambd) {
  LS_CHECK(lambd.to_double() >= 0, Error, "[softshrink] lambd must not be negative: got {}.",
           to_string(lambd));
  return floating("softshrink", self);
}
Outputs hardsigmoid(const Tensor& self) { return floating("hardsigmoid", self); }
Outputs hardswish(const Tensor& self) { return floating("hardswish", self); }
Outputs softplus(const Tensor& self, Scalar, Scalar) { return floating("softplus", self); }
Outputs log_sigmoid(const Tensor& self) { return floating("log_sigmoid", self); }
Outputs mish(const Tensor& self) { return floating("mish", self); }
Outputs logit(const Tensor& self, std::optional<double>) {
  return unary(to_floating(self.dtype()), self);
}

}  // namespace lockstep::rules
