#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/pointwise/activation_curvature.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_rules.h"

namespace lockstep {

namespace rules {
namespace {

void check_approximate(std::string_view op, std::string_view approximate) {
  LS_CHECK(approximate == "none" || approximate == "tanh", Error,
           "[{}] unknown approximation: expected \"none\" or \"tanh\", got \"{}\".", op,
           approximate);
}

Outputs relu(const Tensor& self) {
  refuse_bool("relu", self, "Cast it with to(dtype).");
  return unary(self.dtype(), self);
}
Outputs gelu(const Tensor& self, std::string_view approximate) {
  check_approximate("gelu", approximate);
  require_floating("gelu", self);
  return unary(self.dtype(), self);
}
Outputs silu(const Tensor& self) {
  require_floating("silu", self);
  return unary(self.dtype(), self);
}
Outputs swiglu(const Tensor& gate, const Tensor& up) {
  require_floating("swiglu", gate);
  require_floating("swiglu", up);
  return binary("swiglu", gate, up);
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
Outputs swiglu_backward(const Tensor& grad, const Tensor& gate, const Tensor& up) {
  require_floating("swiglu_backward", gate);
  require_floating("swiglu_backward", up);
  return pointwise_result("swiglu_backward", common_dtype(grad, gate, up), {&grad, &gate, &up});
}
Outputs threshold_backward(const Tensor& grad, const Tensor& self, Scalar threshold) {
  check_factor("threshold_backward", "threshold", self.dtype(), threshold);
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

}  // namespace
}  // namespace rules

namespace {

// Second derivatives, for the gradients of the backward operators.

/// Second derivative of gelu, x Phi(x): phi(x) (2 - x^2), phi the normal density.
Tensor gelu_curvature(const Tensor& x) {
  const Tensor squared = square(x);
  const Tensor density = mul(exp(mul(squared, -0.5)), 0.39894228040143267794);
  return mul(density, rsub(squared, 2));
}

}  // namespace

/// Second derivative of silu, x s(x): s' (2 + x (1 - 2 s)), s the sigmoid.
Tensor silu_curvature(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return mul(mul(s, rsub(s, 1)), add(mul(x, rsub(mul(s, 2), 1)), 2));
}

/// Second derivative of x s(v(x)), s the sigmoid and v = 2 sqrt(2/pi) (x + 0.044715 x^3):
/// s' (2 v' + x v'' + x v'^2 (1 - 2 s)) with s' = s (1 - s).
Tensor gelu_tanh_curvature(const Tensor& x) {
  constexpr double kFactor = 1.59576912160573071;
  constexpr double kCubic = kFactor * 0.044715;
  const Tensor squared = square(x);
  const Tensor s = sigmoid(mul(x, add(mul(squared, kCubic), kFactor)));
  const Tensor slope = add(mul(squared, 3 * kCubic), kFactor);
  const Tensor bend = add(mul(slope, 2), mul(squared, 6 * kCubic));
  const Tensor turn = mul(mul(x, square(slope)), rsub(mul(s, 2), 1));
  return mul(mul(s, rsub(s, 1)), add(bend, turn));
}

LS_OP(tanh, Tensor(const Tensor&), "tanh(Tensor self) -> Tensor")
    .doc("Hyperbolic tangent.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return tanh_backward(grad, ctx.saved(0)); });
    });
Tensor tanh(const Tensor& self) { return op_tanh(self); }

LS_OP(sigmoid, Tensor(const Tensor&), "sigmoid(Tensor self) -> Tensor")
    .doc("1 / (1 + exp(-self)).")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return sigmoid_backward(grad, ctx.saved(0)); });
    });
Tensor sigmoid(const Tensor& self) { return op_sigmoid(self); }

LS_OP(relu, Tensor(const Tensor&), "relu(Tensor self) -> Tensor")
    .doc("max(self, 0).")
    .structured(rules::relu)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return threshold_backward(grad, ctx.saved(0), 0); });
    });
Tensor relu(const Tensor& self) { return op_relu(self); }
const Tensor& relu_(const Tensor& self) { return op_relu.in_place(self); }

LS_OP(gelu, Tensor(const Tensor&, std::string_view),
      "gelu(Tensor self, *, str approximate=\"none\") -> Tensor")
    .doc("self times the normal distribution function of self.")
    .structured(rules::gelu)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return gelu_backward(grad, ctx.saved(0), ctx.argument<std::string_view>(1)); });
    });
Tensor gelu(const Tensor& self, std::string_view approximate) { return op_gelu(self, approximate); }

LS_OP(silu, Tensor(const Tensor&), "silu(Tensor self) -> Tensor")
    .doc("self * sigmoid(self).")
    .structured(rules::silu)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return silu_backward(grad, ctx.saved(0)); });
    });
Tensor silu(const Tensor& self) { return op_silu(self); }

LS_OP(gelu_backward, Tensor(const Tensor&, const Tensor&, std::string_view),
      "gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor")
    .doc("grad_output times the derivative of gelu at self.")
    .structured(rules::gelu_backward)
    .batching(batching::elementwise)
    .out("grad_input")
    .saves({"grad_output for self", "self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(1);
      const std::string_view approximate = ctx.argument<std::string_view>(2);
      return ctx.gradients([&] { return gelu_backward(grad, self, approximate); },
                           [&] {
                             const Tensor curvature = approximate == "tanh"
                                                          ? gelu_tanh_curvature(self)
                                                          : gelu_curvature(self);
                             return mul(mul(grad, ctx.saved(0)), curvature);
                           });
    });
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self, std::string_view approximate) {
  return op_gelu_backward(grad_output, self, approximate);
}

LS_OP(silu_backward, Tensor(const Tensor&, const Tensor&),
      "silu_backward(Tensor grad_output, Tensor self) -> Tensor")
    .doc("grad_output times the derivative of silu at self.")
    .structured(rules::silu_backward)
    .batching(batching::elementwise)
    .out("grad_input")
    .saves({"grad_output for self", "self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(1);
      return ctx.gradients([&] { return silu_backward(grad, self); },
                           [&] { return mul(mul(grad, ctx.saved(0)), silu_curvature(self)); });
    });
Tensor silu_backward(const Tensor& grad_output, const Tensor& self) {
  return op_silu_backward(grad_output, self);
}

LS_OP(swiglu, Tensor(const Tensor&, const Tensor&), "swiglu(Tensor gate, Tensor up) -> Tensor")
    .doc("silu(gate) * up.")
    .structured(rules::swiglu)
    .batching(batching::elementwise)
    .out()
    .saves({"gate", "up for gate"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& gate = ctx.saved(0);
      return ctx.gradients(
          [&] { return ctx.unbroadcast(swiglu_backward(grad, gate, ctx.saved(1)), 0); },
          [&] { return ctx.unbroadcast(swiglu(gate, grad), 1); });
    });
Tensor swiglu(const Tensor& gate, const Tensor& up) { return op_swiglu(gate, up); }

LS_OP(swiglu_backward, Tensor(const Tensor&, const Tensor&, const Tensor&),
      "swiglu_backward(Tensor grad_output, Tensor gate, Tensor up) -> Tensor")
    .doc("grad_output * up times the derivative of silu at gate.")
    .structured(rules::swiglu_backward)
    .batching(batching::elementwise)
    .out("grad_input")
    .saves({"grad_output for gate, up", "gate", "up for grad_output, gate"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& gate = ctx.saved(1);
      return ctx.gradients(
          [&] { return ctx.unbroadcast(swiglu_backward(grad, gate, ctx.saved(2)), 0); },
          [&] {
            const Tensor factors = mul(mul(grad, ctx.saved(0)), ctx.saved(2));
            return ctx.unbroadcast(mul(factors, silu_curvature(gate)), 1);
          },
          [&] { return ctx.unbroadcast(swiglu_backward(grad, gate, ctx.saved(0)), 2); });
    });
Tensor swiglu_backward(const Tensor& grad_output, const Tensor& gate, const Tensor& up) {
  return op_swiglu_backward(grad_output, gate, up);
}

LS_OP(threshold_backward, Tensor(const Tensor&, const Tensor&, Scalar),
      "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")
    .doc("grad_output where self > threshold, else 0.")
    .structured(rules::threshold_backward)
    .batching(batching::elementwise)
    .out("grad_input")
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return threshold_backward(grad, ctx.saved(0), ctx.argument<Scalar>(2)); },
          [] { return Tensor(); });
    });
Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, const Scalar& threshold) {
  return op_threshold_backward(grad_output, self, threshold);
}

LS_OP(tanh_backward, Tensor(const Tensor&, const Tensor&),
      "tanh_backward(Tensor grad_output, Tensor output) -> Tensor")
    .doc("grad_output * (1 - output^2).")
    .structured(rules::tanh_backward)
    .batching(batching::elementwise)
    .out("grad_input")
    .saves({"grad_output for output", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& output = ctx.saved(1);
      return ctx.gradients([&] { return tanh_backward(grad, output); },
                           [&] { return mul(mul(grad, mul(ctx.saved(0), -2)), output); });
    });
Tensor tanh_backward(const Tensor& grad_output, const Tensor& output) {
  return op_tanh_backward(grad_output, output);
}

LS_OP(sigmoid_backward, Tensor(const Tensor&, const Tensor&),
      "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor")
    .doc("grad_output * (1 - output) * output.")
    .structured(rules::sigmoid_backward)
    .batching(batching::elementwise)
    .out("grad_input")
    .saves({"grad_output for output", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& output = ctx.saved(1);
      return ctx.gradients([&] { return sigmoid_backward(grad, output); },
                           [&] { return mul(mul(grad, ctx.saved(0)), rsub(mul(output, 2), 1)); });
    });
Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output) {
  return op_sigmoid_backward(grad_output, output);
}

}  // namespace lockstep
