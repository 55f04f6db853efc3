#include "core/ops/image/pool.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/image/pool_rules.h"
#include "core/ops/index/index.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;
using AvgPool = Tensor(const Tensor&, IntList, IntList, IntList, bool, bool,
                       std::optional<int64_t>);
using AvgPoolBackward = Tensor(const Tensor&, const Tensor&, IntList, IntList, IntList, bool, bool,
                               std::optional<int64_t>);
using MaxPool = Tensor(const Tensor&, IntList, IntList, IntList, IntList, bool);
using MaxPoolWithIndices = TwoTensors(const Tensor&, IntList, IntList, IntList, IntList, bool);
using MaxPoolBackward = Tensor(const Tensor&, const Tensor&, IntList, IntList, IntList, IntList,
                               bool, const Tensor&);

/// The derivative of average pooling, computed by the operator `backward`.
template <AvgPoolBackward* backward>
Gradients mean_gradient(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    return backward(grad, ctx.saved(0), ctx.argument<IntList>(1), ctx.argument<IntList>(2),
                    ctx.argument<IntList>(3), ctx.argument<bool>(4), ctx.argument<bool>(5),
                    ctx.argument<std::optional<int64_t>>(6));
  });
}

/// The derivative of average pooling's backward: that is linear, and its transpose is `forward`.
template <AvgPool* forward>
Gradients mean_of_gradient(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients(
      [&] {
        return forward(grad, ctx.argument<IntList>(2), ctx.argument<IntList>(3),
                       ctx.argument<IntList>(4), ctx.argument<bool>(5), ctx.argument<bool>(6),
                       ctx.argument<std::optional<int64_t>>(7));
      },
      [] { return Tensor(); });
}

template <MaxPoolBackward* backward>
Gradients max_gradient(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] {
    return backward(grad, ctx.saved(0), ctx.argument<IntList>(1), ctx.argument<IntList>(2),
                    ctx.argument<IntList>(3), ctx.argument<IntList>(4), ctx.argument<bool>(5),
                    ctx.saved(1));
  });
}

/// The derivative of max pooling's backward: the elements of `grad` at the saved indices.
template <int kSpatial>
Gradients taken_of_gradient(VjpContext& ctx, const Tensor& grad) {
  const Tensor& indices = ctx.saved(0);
  return ctx.gradients(
      [&] {
        return gather(grad.flatten(-kSpatial), -1, indices.flatten(-kSpatial))
            .view(indices.sizes());
      },
      [] { return Tensor(); }, [] { return Tensor(); });
}

/// Turns a list for 1d pooling into one for 2d pooling over a first dimension of size 1, for which
/// it holds `otherwise`.
Dims with_height(IntList list, int64_t otherwise) {
  if (list.empty()) return {};
  return {otherwise, list[0]};
}
Tensor with_height(std::string_view op, const Tensor& self) {
  LS_CHECK(self.dim() == 2 || self.dim() == 3, ShapeError,
           "[{}] expected input [channels, length] or [batch, channels, length], got shape {}.", op,
           self.shape());
  return self.unsqueeze(-2);
}

}  // namespace

LS_OP(avg_pool2d, AvgPool,
      "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
      "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor")
    .doc("Means of windows over two spatial dimensions.")
    .structured(rules::avg_pool<2>)
    .batching(batching::images_2d)
    .out()
    .saves({"self"})
    .derivative(mean_gradient<avg_pool2d_backward>);
Tensor avg_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  return op_avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                       divisor_override);
}

LS_OP(avg_pool2d_backward, AvgPoolBackward,
      "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
      "int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
    .doc("Gradient of avg_pool2d's input.")
    .structured(rules::avg_pool_backward<2>)
    .batching(batching::images_2d)
    .out("grad_input")
    .derivative(mean_of_gradient<avg_pool2d>);
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                           IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return op_avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode,
                                count_include_pad, divisor_override);
}

LS_OP(avg_pool3d, AvgPool,
      "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
      "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor")
    .doc("Means of windows over three spatial dimensions.")
    .structured(rules::avg_pool<3>)
    .batching(batching::images_3d)
    .out()
    .saves({"self"})
    .derivative(mean_gradient<avg_pool3d_backward>);
Tensor avg_pool3d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  return op_avg_pool3d(self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                       divisor_override);
}

LS_OP(avg_pool3d_backward, AvgPoolBackward,
      "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, "
      "int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
    .doc("Gradient of avg_pool3d's input.")
    .structured(rules::avg_pool_backward<3>)
    .batching(batching::images_3d)
    .out("grad_input")
    .derivative(mean_of_gradient<avg_pool3d>);
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                           IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return op_avg_pool3d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode,
                                count_include_pad, divisor_override);
}

LS_OP(avg_pool1d, Tensor(const Tensor&, IntList, IntList, IntList, bool, bool),
      "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "
      "ceil_mode=False, bool count_include_pad=True) -> Tensor")
    .doc("Means of windows over one spatial dimension.")
    .composite([](const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  bool ceil_mode, bool count_include_pad) {
      return avg_pool2d(with_height("avg_pool1d", self), with_height(kernel_size, 1),
                        with_height(stride, 1), with_height(padding, 0), ceil_mode,
                        count_include_pad)
          .squeeze(-2);
    });
Tensor avg_pool1d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  bool ceil_mode, bool count_include_pad) {
  return op_avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad);
}

LS_OP(avg_pool1d_out,
      const Tensor&(const Tensor&, IntList, IntList, IntList, bool, bool, const Tensor&),
      "avg_pool1d.out(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "
      "ceil_mode=False, bool count_include_pad=True, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("avg_pool1d, written into out.")
    .composite([](const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  bool ceil_mode, bool count_include_pad, const Tensor& out) -> const Tensor& {
      return clone_out(
          out, op_avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad));
    });

LS_OP(max_pool2d_with_indices, MaxPoolWithIndices,
      "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
      "padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
    .doc("Largest elements of windows over two spatial dimensions, and their indices.")
    .structured(rules::max_pool<2>)
    .batching(batching::images_2d)
    .saves({"self", "output1"})
    .differentiable_outputs(1)
    .derivative(max_gradient<max_pool2d_with_indices_backward>);
TwoTensors max_pool2d_with_indices(const Tensor& self, IntList kernel_size, IntList stride,
                                   IntList padding, IntList dilation, bool ceil_mode) {
  return op_max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode);
}

LS_OP(max_pool2d_with_indices_out,
      TwoTensors(const Tensor&, IntList, IntList, IntList, IntList, bool, const Tensor&,
                 const Tensor&),
      "max_pool2d_with_indices.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
      "padding=0, int[2] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) "
      "-> (Tensor(a!), Tensor(b!))")
    .doc("max_pool2d_with_indices, written into out and indices.")
    .composite([](const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode, const Tensor& out, const Tensor& indices) {
      return write_results(
          op_max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode), out,
          indices);
    });

LS_OP(max_pool2d_with_indices_backward, MaxPoolBackward,
      "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
      "int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor")
    .doc("Gradient of max_pool2d_with_indices' input.")
    .structured(rules::max_pool_backward<2>)
    .batching(batching::images_2d)
    .out("grad_input")
    .saves({"indices"})
    .derivative(taken_of_gradient<2>);
Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self,
                                        IntList kernel_size, IntList stride, IntList padding,
                                        IntList dilation, bool ceil_mode, const Tensor& indices) {
  return op_max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding,
                                             dilation, ceil_mode, indices);
}

LS_OP(max_pool3d_with_indices, MaxPoolWithIndices,
      "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
      "padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
    .doc("Largest elements of windows over three spatial dimensions, and their indices.")
    .structured(rules::max_pool<3>)
    .batching(batching::images_3d)
    .saves({"self", "output1"})
    .differentiable_outputs(1)
    .derivative(max_gradient<max_pool3d_with_indices_backward>);
TwoTensors max_pool3d_with_indices(const Tensor& self, IntList kernel_size, IntList stride,
                                   IntList padding, IntList dilation, bool ceil_mode) {
  return op_max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode);
}

LS_OP(max_pool3d_with_indices_out,
      TwoTensors(const Tensor&, IntList, IntList, IntList, IntList, bool, const Tensor&,
                 const Tensor&),
      "max_pool3d_with_indices.out(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
      "padding=0, int[3] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) "
      "-> (Tensor(a!), Tensor(b!))")
    .doc("max_pool3d_with_indices, written into out and indices.")
    .composite([](const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode, const Tensor& out, const Tensor& indices) {
      return write_results(
          op_max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode), out,
          indices);
    });

LS_OP(max_pool3d_with_indices_backward, MaxPoolBackward,
      "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, "
      "int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor")
    .doc("Gradient of max_pool3d_with_indices' input.")
    .structured(rules::max_pool_backward<3>)
    .batching(batching::images_3d)
    .out("grad_input")
    .saves({"indices"})
    .derivative(taken_of_gradient<3>);
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self,
                                        IntList kernel_size, IntList stride, IntList padding,
                                        IntList dilation, bool ceil_mode, const Tensor& indices) {
  return op_max_pool3d_with_indices_backward(grad_output, self, kernel_size, stride, padding,
                                             dilation, ceil_mode, indices);
}

LS_OP(max_pool1d, MaxPool,
      "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] "
      "dilation=1, bool ceil_mode=False) -> Tensor")
    .doc("Largest elements of windows over one spatial dimension.")
    .composite([](const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
      return max_pool2d(with_height("max_pool1d", self), with_height(kernel_size, 1),
                        with_height(stride, 1), with_height(padding, 0), with_height(dilation, 1),
                        ceil_mode)
          .squeeze(-2);
    });
Tensor max_pool1d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return op_max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode);
}

LS_OP(max_pool2d, MaxPool,
      "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
      "dilation=1, bool ceil_mode=False) -> Tensor")
    .doc("Largest elements of windows over two spatial dimensions.")
    .composite([](const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
      return std::get<0>(
          max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
    });
Tensor max_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return op_max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode);
}

LS_OP(max_pool3d, MaxPool,
      "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
      "dilation=1, bool ceil_mode=False) -> Tensor")
    .doc("Largest elements of windows over three spatial dimensions.")
    .composite([](const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
      return std::get<0>(
          max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
    });
Tensor max_pool3d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return op_max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode);
}

using AdaptivePool = Tensor(const Tensor&, IntList);
using AdaptivePoolBackward = Tensor(const Tensor&, const Tensor&);

LS_OP(even_avg_pool2d, AdaptivePool,
      "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
    .doc("Means of the windows that cut two spatial dimensions evenly.")
    .structured(rules::adaptive_avg_pool<2>)
    .batching(batching::images_2d)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return adaptive_avg_pool2d_backward(grad, ctx.saved(0)); });
    });

LS_OP(even_avg_pool2d_backward, AdaptivePoolBackward,
      "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor")
    .doc("Gradient of _adaptive_avg_pool2d's input.")
    .structured(rules::adaptive_avg_pool_backward<2>)
    .batching(batching::images_2d)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return adaptive_avg_pool2d(grad, ctx.sizes(0).last(2)); },
                           [] { return Tensor(); });
    });
Tensor adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self) {
  return op_even_avg_pool2d_backward(grad_output, self);
}

LS_OP(even_avg_pool3d, AdaptivePool,
      "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
    .doc("Means of the windows that cut three spatial dimensions evenly.")
    .structured(rules::adaptive_avg_pool<3>)
    .batching(batching::images_3d)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return adaptive_avg_pool3d_backward(grad, ctx.saved(0)); });
    });

LS_OP(even_avg_pool3d_backward, AdaptivePoolBackward,
      "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor")
    .doc("Gradient of _adaptive_avg_pool3d's input.")
    .structured(rules::adaptive_avg_pool_backward<3>)
    .batching(batching::images_3d)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return adaptive_avg_pool3d(grad, ctx.sizes(0).last(3)); },
                           [] { return Tensor(); });
    });
Tensor adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self) {
  return op_even_avg_pool3d_backward(grad_output, self);
}

LS_OP(adaptive_avg_pool1d, AdaptivePool,
      "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
    .doc("Means of the windows that divide one spatial dimension evenly.")
    .composite([](const Tensor& self, IntList output_size) {
      return adaptive_avg_pool2d(with_height("adaptive_avg_pool1d", self),
                                 with_height(output_size, 1))
          .squeeze(-2);
    });
Tensor adaptive_avg_pool1d(const Tensor& self, IntList output_size) {
  return op_adaptive_avg_pool1d(self, output_size);
}

LS_OP(adaptive_avg_pool1d_out, const Tensor&(const Tensor&, IntList, const Tensor&),
      "adaptive_avg_pool1d.out(Tensor self, int[1] output_size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("adaptive_avg_pool1d, written into out.")
    .composite([](const Tensor& self, IntList output_size, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_adaptive_avg_pool1d(self, output_size));
    });

LS_OP(adaptive_avg_pool2d, AdaptivePool,
      "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
    .doc("Means of the windows that cut two spatial dimensions evenly.")
    .composite([](const Tensor& self, IntList output_size) {
      return op_even_avg_pool2d(self, output_size);
    });
Tensor adaptive_avg_pool2d(const Tensor& self, IntList output_size) {
  return op_adaptive_avg_pool2d(self, output_size);
}

LS_OP(
    adaptive_avg_pool2d_out, const Tensor&(const Tensor&, IntList, const Tensor&),
    "adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("adaptive_avg_pool2d, written into out.")
    .composite([](const Tensor& self, IntList output_size, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_adaptive_avg_pool2d(self, output_size));
    });

LS_OP(adaptive_avg_pool3d, AdaptivePool,
      "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
    .doc("Means of the windows that cut three spatial dimensions evenly.")
    .composite([](const Tensor& self, IntList output_size) {
      return op_even_avg_pool3d(self, output_size);
    });
Tensor adaptive_avg_pool3d(const Tensor& self, IntList output_size) {
  return op_adaptive_avg_pool3d(self, output_size);
}

LS_OP(
    adaptive_avg_pool3d_out, const Tensor&(const Tensor&, IntList, const Tensor&),
    "adaptive_avg_pool3d.out(Tensor self, SymInt[3] output_size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("adaptive_avg_pool3d, written into out.")
    .composite([](const Tensor& self, IntList output_size, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_adaptive_avg_pool3d(self, output_size));
    });

}  // namespace lockstep
