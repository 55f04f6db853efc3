// softmax and log_softmax; declared in loss.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/factory/copy.h"
#include "core/ops/loss/loss.h"
#include "core/ops/loss/loss_rules.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace rules {
namespace {

Outputs softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  check_floating("softmax", self);
  wrap_dim("softmax", dim, self.dim());
  if (!half_to_float) return one(to_dims(self.sizes()), self.dtype());
  LS_CHECK(self.dtype() == DType::kF16 || self.dtype() == DType::kBF16, DTypeError,
           "[softmax] half_to_float expects float16 or bfloat16, got {}.", to_string(self.dtype()));
  Outputs outputs = one(to_dims(self.sizes()), DType::kF32);
  outputs.compute = DType::kF32;
  return outputs;
}
Outputs softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim,
                         DType input_dtype) {
  check_floating("softmax_backward", output);
  LS_CHECK(same(grad_output.sizes(), output.sizes()), ShapeError,
           "[softmax_backward] the gradient has the wrong shape: expected {}, got {}.",
           output.shape(), grad_output.shape());
  wrap_dim("softmax_backward", dim, output.dim());
  Outputs outputs = one(to_dims(output.sizes()), input_dtype);
  outputs.compute = output.dtype();
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

/// The input in the dtype asked for; integers become f32.
Tensor softmax_input(const Tensor& self, std::optional<DType> dtype) {
  const DType natural = is_floating(self.dtype()) ? self.dtype() : DType::kF32;
  return as_dtype(self, dtype.value_or(natural));
}

}  // namespace

LS_OP(softmax_data, Tensor(const Tensor&, int64_t, bool),
      "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
    .doc("exp(self) / sum(exp(self)) along a dimension.")
    .structured(rules::softmax)
    .batching(batching::along_dims)
    .out()
    .autocast(Autocast::kF32)
    .saves({"output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return softmax_backward_data(grad, ctx.saved(0), ctx.argument<int64_t>(1),
                                     ctx.input(0).dtype);
      });
    });

LS_OP(log_softmax_data, Tensor(const Tensor&, int64_t, bool),
      "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
    .doc("log(softmax(self)) along a dimension.")
    .structured(rules::softmax)
    .batching(batching::along_dims)
    .out()
    .autocast(Autocast::kF32)
    .saves({"output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return log_softmax_backward_data(grad, ctx.saved(0), ctx.argument<int64_t>(1),
                                         ctx.input(0).dtype);
      });
    });

LS_OP(softmax, Tensor(const Tensor&, int64_t, std::optional<DType>),
      "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .doc("exp(self) / sum(exp(self)) along a dimension.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      return op_softmax_data(softmax_input(self, dtype), dim, false);
    });
Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return op_softmax(self, dim, dtype);
}

LS_OP(softmax_out, const Tensor&(const Tensor&, int64_t, std::optional<DType>, const Tensor&),
      "softmax.int_out(Tensor self, int dim, ScalarType? dtype=None, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("softmax, written into out.")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_softmax(self, dim, dtype));
    });

LS_OP(log_softmax, Tensor(const Tensor&, int64_t, std::optional<DType>),
      "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .doc("log(softmax(self)) along a dimension.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      return op_log_softmax_data(softmax_input(self, dtype), dim, false);
    });
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return op_log_softmax(self, dim, dtype);
}

LS_OP(log_softmax_out, const Tensor&(const Tensor&, int64_t, std::optional<DType>, const Tensor&),
      "log_softmax.int_out(Tensor self, int dim, ScalarType? dtype=None, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("log_softmax, written into out.")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_log_softmax(self, dim, dtype));
    });

LS_OP(
    softmax_backward_data, Tensor(const Tensor&, const Tensor&, int64_t, DType),
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> "
    "Tensor")
    .doc("Gradient of softmax's input from its output.")
    .structured(rules::softmax_backward)
    .batching(batching::along_dims)
    .out()
    .saves({"grad_output for output", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      // dx = y (g - sum(g y)); with v the gradient of dx, v . dx is a plain function of g and y.
      const Tensor& y = ctx.saved(1);
      const int64_t dim = ctx.argument<int64_t>(2);
      const Tensor v = as_dtype(grad, y.dtype());
      return ctx.gradients([&] { return softmax_backward_data(v, y, dim, ctx.input(0).dtype); },
                           [&] {
                             const Tensor g = as_dtype(ctx.saved(0), y.dtype());
                             const Tensor along_g = sum(g * y, {dim}, true);
                             const Tensor along_v = sum(v * y, {dim}, true);
                             return v * (g - along_g) - g * along_v;
                           });
    });
Tensor softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim,
                             DType input_dtype) {
  return op_softmax_backward_data(grad_output, output, dim, input_dtype);
}

LS_OP(log_softmax_backward_data, Tensor(const Tensor&, const Tensor&, int64_t, DType),
      "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
      "input_dtype) "
      "-> Tensor")
    .doc("Gradient of log_softmax's input from its output.")
    .structured(rules::softmax_backward)
    .batching(batching::along_dims)
    .out()
    .saves({"grad_output for output", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      // dx = g - exp(y) sum(g).
      const Tensor& y = ctx.saved(1);
      const int64_t dim = ctx.argument<int64_t>(2);
      const Tensor v = as_dtype(grad, y.dtype());
      return ctx.gradients(
          [&] { return as_dtype(v - sum(v * exp(y), {dim}, true), ctx.input(0).dtype); },
          [&] {
            const Tensor g = as_dtype(ctx.saved(0), y.dtype());
            return -(v * exp(y) * sum(g, {dim}, true));
          });
    });
Tensor log_softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim,
                                 DType input_dtype) {
  return op_log_softmax_backward_data(grad_output, output, dim, input_dtype);
}

}  // namespace lockstep
