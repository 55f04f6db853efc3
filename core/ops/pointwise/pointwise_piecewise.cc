#include "core/ops/pointwise/pointwise_piecewise.h"

#include <limits>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_rules.h"
#include "core/ops/view/view.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

Outputs floating(std::string_view op, const Tensor& self) {
  require_floating(op, self);
  return unary(self.dtype(), self);
}

void check_elu(std::string_view op, const Tensor& tensor, const Scalar& alpha, const Scalar& scale,
               const Scalar& input_scale) {
  require_floating(op, tensor);
  check_factor(op, "alpha", tensor.dtype(), alpha);
  check_factor(op, "scale", tensor.dtype(), scale);
  check_factor(op, "input_scale", tensor.dtype(), input_scale);
}
Outputs elu(const Tensor& self, Scalar alpha, Scalar scale, Scalar input_scale) {
  check_elu("elu", self, alpha, scale, input_scale);
  return unary(self.dtype(), self);
}
Outputs elu_backward(const Tensor& grad, Scalar alpha, Scalar scale, Scalar input_scale,
                     bool is_result, const Tensor& self_or_result) {
  check_elu("elu_backward", self_or_result, alpha, scale, input_scale);
  LS_CHECK(!is_result || alpha.to_double() >= 0, Error,
           "[elu_backward] the slope cannot be told from the result when alpha is negative: got "
           "{}. Give elu's argument.",
           to_string(alpha));
  return pointwise_result("elu_backward", result_type(grad, self_or_result),
                          {&grad, &self_or_result});
}
Outputs celu(const Tensor& self, Scalar alpha) {
  LS_CHECK(alpha.to_double() != 0, Error, "[celu] alpha must not be 0.");
  require_floating("celu", self);
  check_factor("celu", "alpha", self.dtype(), alpha);
  return unary(self.dtype(), self);
}
Outputs leaky_relu(const Tensor& self, Scalar negative_slope) {
  require_floating("leaky_relu", self);
  check_factor("leaky_relu", "negative_slope", self.dtype(), negative_slope);
  return unary(self.dtype(), self);
}
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
Outputs hardshrink(const Tensor& self, Scalar lambd) {
  check_holds("hardshrink", "lambd", self.dtype(), lambd);
  return floating("hardshrink", self);
}
Outputs softshrink(const Tensor& self, Scalar lambd) {
  LS_CHECK(lambd.to_double() >= 0, Error, "[softshrink] lambd must not be negative: got {}.",
           to_string(lambd));
  check_holds("softshrink", "lambd", self.dtype(), lambd);
  return floating("softshrink", self);
}
Outputs hardsigmoid(const Tensor& self) { return floating("hardsigmoid", self); }
Outputs hardswish(const Tensor& self) { return floating("hardswish", self); }
Outputs softplus(const Tensor& self, Scalar beta, Scalar threshold) {
  require_floating("softplus", self);
  check_factor("softplus", "beta", self.dtype(), beta);
  check_factor("softplus", "threshold", self.dtype(), threshold);
  return unary(self.dtype(), self);
}
Outputs log_sigmoid(const Tensor& self) { return floating("log_sigmoid", self); }
Outputs mish(const Tensor& self) { return floating("mish", self); }
Outputs logit(const Tensor& self, std::optional<double>) {
  return unary(to_floating(self.dtype()), self);
}

}  // namespace
}  // namespace rules

namespace {

/// grad where self lies between the bounds, else (also for NaN) 0.
Tensor grad_between(const Tensor& grad, const Tensor& self, const Scalar& low, const Scalar& high) {
  return masked_fill(grad, logical_not(logical_and(gt(self, low), lt(self, high))), 0);
}
/// grad where |self| > bound, else (also for NaN) 0.
Tensor grad_beyond(const Tensor& grad, const Tensor& self, const Scalar& bound) {
  return masked_fill(grad, logical_not(logical_or(lt(self, -bound), gt(self, bound))), 0);
}

/// The weights as a tensor that broadcasts along the channels of self.
Tensor along_channels(const Tensor& weight, const Tensor& self) {
  if (weight.numel() == 1) return view(weight, IntList());
  Dims sizes(static_cast<size_t>(self.dim()), 1);
  sizes[self.dim() > 1 ? 1 : 0] = weight.numel();
  return view(weight, sizes);
}

constexpr double kSeluAlpha = 1.67326324235437728482;
constexpr double kSeluScale = 1.05070098735548049342;

}  // namespace

LS_OP(elu, Tensor(const Tensor&, Scalar, Scalar, Scalar),
      "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
    .doc("scale * self, and scale * alpha * (exp(input_scale * self) - 1) where self <= 0.")
    .structured(rules::elu)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return elu_backward(grad, ctx.argument<Scalar>(1), ctx.argument<Scalar>(2),
                            ctx.argument<Scalar>(3), false, ctx.saved(0));
      });
    });
Tensor elu(const Tensor& self, const Scalar& alpha, const Scalar& scale,
           const Scalar& input_scale) {
  return op_elu(self, alpha, scale, input_scale);
}

LS_OP(elu_backward, Tensor(const Tensor&, Scalar, Scalar, Scalar, bool, const Tensor&),
      "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool "
      "is_result, Tensor self_or_result) -> Tensor")
    .doc("grad_output times the derivative of elu, computed from its argument or its result.")
    .structured(rules::elu_backward)
    .batching(batching::elementwise)
    .out("grad_input")
    .saves({"grad_output for self_or_result", "self_or_result"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Scalar alpha = ctx.argument<Scalar>(1);
      const Scalar scale = ctx.argument<Scalar>(2);
      const Scalar input_scale = ctx.argument<Scalar>(3);
      const bool is_result = ctx.argument<bool>(4);
      const Tensor& saved = ctx.saved(1);
      return ctx.gradients(
          [&] { return elu_backward(grad, alpha, scale, input_scale, is_result, saved); },
          [&] {
            const double rate = input_scale.to_double();
            const Tensor both = mul(mul(grad, ctx.saved(0)), rate);
            const double bend = rate * alpha.to_double() * scale.to_double();
            const Tensor slope = is_result ? both : mul(both, mul(exp(mul(saved, rate)), bend));
            return masked_fill(slope, gt(saved, 0), 0);
          });
    });
Tensor elu_backward(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  return op_elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result);
}

LS_OP(celu, Tensor(const Tensor&, Scalar), "celu(Tensor self, Scalar alpha=1.) -> Tensor")
    .doc("self, and alpha * (exp(self / alpha) - 1) where self <= 0.")
    .composite([](const Tensor& self, Scalar alpha) {
      rules::celu(self, alpha);
      return elu(self, alpha, 1, 1 / alpha.to_double());
    });
Tensor celu(const Tensor& self, const Scalar& alpha) { return op_celu(self, alpha); }

LS_OP(celu_in_place, const Tensor&(const Tensor&, Scalar),
      "celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)")
    .doc("celu, written into self.")
    .composite([](const Tensor& self, Scalar alpha) -> const Tensor& {
      rules::celu(self, alpha);
      return op_elu.in_place(self, alpha, 1, 1 / alpha.to_double());
    });

LS_OP(celu_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "celu.out(Tensor self, Scalar alpha=1., *, Tensor(a!) out) -> Tensor(a!)")
    .doc("celu, written into out.")
    .composite([](const Tensor& self, Scalar alpha, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_celu(self, alpha));
    });

LS_OP(selu, Tensor(const Tensor&), "selu(Tensor self) -> Tensor")
    .doc("elu with the constants that keep mean 0 and variance 1.")
    .composite([](const Tensor& self) { return elu(self, kSeluAlpha, kSeluScale); });
Tensor selu(const Tensor& self) { return op_selu(self); }

LS_OP(selu_in_place, const Tensor&(const Tensor&), "selu_(Tensor(a!) self) -> Tensor(a!)")
    .doc("selu, written into self.")
    .composite([](const Tensor& self) -> const Tensor& {
      return op_elu.in_place(self, kSeluAlpha, kSeluScale, 1);
    });

LS_OP(leaky_relu, Tensor(const Tensor&, Scalar),
      "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
    .doc("self, times negative_slope where it is not above 0.")
    .structured(rules::leaky_relu)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return where(gt(ctx.saved(0), 0), grad, mul(grad, ctx.argument<Scalar>(1))); });
    });
Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope) {
  return op_leaky_relu(self, negative_slope);
}

LS_OP(prelu_kernel, Tensor(const Tensor&, const Tensor&),
      "_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
    .doc("self, times weight where it is not above 0; weight broadcasts to self.")
    .structured(rules::prelu_kernel)
    .saves({"self", "weight for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor above = gt(self, 0);
      return ctx.gradients(
          [&] { return where(above, grad, mul(grad, ctx.saved(1))); },
          [&] { return ctx.unbroadcast(masked_fill(mul(grad, self), above, 0), 1); });
    });

LS_OP(prelu, Tensor(const Tensor&, const Tensor&), "prelu(Tensor self, Tensor weight) -> Tensor")
    .doc("self, times its channel's weight where it is not above 0.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& self, const Tensor& weight) {
      rules::prelu(self, weight);
      return op_prelu_kernel(self, along_channels(weight, self));
    });
Tensor prelu(const Tensor& self, const Tensor& weight) { return op_prelu(self, weight); }

LS_OP(hardtanh, Tensor(const Tensor&, Scalar, Scalar),
      "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
    .doc("self, but not below min_val and not above max_val.")
    .structured(rules::hardtanh)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return grad_between(grad, ctx.saved(0), ctx.argument<Scalar>(1), ctx.argument<Scalar>(2));
      });
    });
Tensor hardtanh(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  return op_hardtanh(self, min_val, max_val);
}

LS_OP(relu6, Tensor(const Tensor&), "relu6(Tensor self) -> Tensor")
    .doc("self, but not below 0 and not above 6.")
    .composite([](const Tensor& self) { return hardtanh(self, 0, 6); });
Tensor relu6(const Tensor& self) { return op_relu6(self); }

LS_OP(relu6_in_place, const Tensor&(const Tensor&), "relu6_(Tensor(a!) self) -> Tensor(a!)")
    .doc("relu6, written into self.")
    .composite([](const Tensor& self) -> const Tensor& {
      return op_hardtanh.in_place(self, 0, 6);
    });

LS_OP(threshold, Tensor(const Tensor&, Scalar, Scalar),
      "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor")
    .doc("value where self <= threshold, else self.")
    .structured(rules::threshold)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return threshold_backward(grad, ctx.saved(0), ctx.argument<Scalar>(1)); });
    });
Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  return op_threshold(self, threshold, value);
}

LS_OP(hardshrink, Tensor(const Tensor&, Scalar),
      "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
    .doc("0 where |self| <= lambd, else self.")
    .structured(rules::hardshrink)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return grad_beyond(grad, ctx.saved(0), ctx.argument<Scalar>(1)); });
    });
Tensor hardshrink(const Tensor& self, const Scalar& lambd) { return op_hardshrink(self, lambd); }

LS_OP(softshrink, Tensor(const Tensor&, Scalar),
      "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
    .doc("self moved by lambd towards 0, and no further.")
    .structured(rules::softshrink)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return grad_beyond(grad, ctx.saved(0), ctx.argument<Scalar>(1)); });
    });
Tensor softshrink(const Tensor& self, const Scalar& lambd) { return op_softshrink(self, lambd); }

LS_OP(hardsigmoid, Tensor(const Tensor&), "hardsigmoid(Tensor self) -> Tensor")
    .doc("clamp(self + 3, 0, 6) / 6.")
    .structured(rules::hardsigmoid)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& self = ctx.saved(0);
        const Tensor inside = logical_and(gt(self, -3), lt(self, 3));
        return masked_fill(mul(grad, 1.0 / 6), logical_not(inside), 0);
      });
    });
Tensor hardsigmoid(const Tensor& self) { return op_hardsigmoid(self); }

LS_OP(hardswish, Tensor(const Tensor&), "hardswish(Tensor self) -> Tensor")
    .doc("self * clamp(self + 3, 0, 6) / 6.")
    .structured(rules::hardswish)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& self = ctx.saved(0);
        const Tensor bent = mul(grad, add(mul(self, 1.0 / 3), 0.5));
        return masked_fill(where(ge(self, 3), grad, bent), le(self, -3), 0);
      });
    });
Tensor hardswish(const Tensor& self) { return op_hardswish(self); }

LS_OP(softplus, Tensor(const Tensor&, Scalar, Scalar),
      "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor")
    .doc("log(1 + exp(beta * self)) / beta, and self where beta * self > threshold.")
    .structured(rules::softplus)
    .batching(batching::elementwise)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor z = mul(ctx.saved(0), ctx.argument<Scalar>(1));
        return where(gt(z, ctx.argument<Scalar>(2)), grad, mul(grad, sigmoid(z)));
      });
    });
Tensor softplus(const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  return op_softplus(self, beta, threshold);
}

LS_OP(log_sigmoid, Tensor(const Tensor&), "log_sigmoid(Tensor self) -> Tensor")
    .doc("log(1 / (1 + exp(-self))).")
    .structured(rules::log_sigmoid)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, sigmoid(neg(ctx.saved(0)))); });
    });
Tensor log_sigmoid(const Tensor& self) { return op_log_sigmoid(self); }

LS_OP(mish, Tensor(const Tensor&), "mish(Tensor self) -> Tensor")
    .doc("self * tanh(log(1 + exp(self))).")
    .structured(rules::mish)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& self = ctx.saved(0);
        const Tensor t = tanh(softplus(self));
        const Tensor bend = mul(mul(self, sigmoid(self)), rsub(square(t), 1));
        return mul(grad, add(t, bend));
      });
    });
Tensor mish(const Tensor& self) { return op_mish(self); }

LS_OP(logit, Tensor(const Tensor&, std::optional<double>),
      "logit(Tensor self, float? eps=None) -> Tensor")
    .doc("log(self / (1 - self)) of self clamped to [eps, 1 - eps].")
    .structured(rules::logit)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& self = ctx.saved(0);
        const auto eps = ctx.argument<std::optional<double>>(1);
        const double low = eps.value_or(0);
        const Tensor outside = logical_or(lt(self, low), gt(self, 1 - low));
        const double beyond = eps ? 0 : std::numeric_limits<double>::quiet_NaN();
        return masked_fill(div(grad, mul(self, rsub(self, 1))), outside, beyond);
      });
    });
Tensor logit(const Tensor& self, std::optional<double> eps) { return op_logit(self, eps); }

}  // namespace lockstep
