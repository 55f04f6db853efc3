#include "core/ops/image/pool.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/image/pool_rules.h"
#include "core/ops/image/with_height.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

void check_divisor(std::string_view op, std::optional<int64_t> divisor_override) {
  LS_CHECK(divisor_override.value_or(1) != 0, ShapeError, "[{}] divisor_override must not be zero.",
           op);
}

template <int kSpatial>
Outputs avg_pool(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                 bool ceil_mode, bool, std::optional<int64_t> divisor_override) {
  constexpr std::string_view kName = kSpatial == 2 ? "avg_pool2d" : "avg_pool3d";
  check_divisor(kName, divisor_override);
  const Windows w = windows(kName, kSpatial, kernel_size, stride, padding, {1});
  return like_input(pooled_sizes(kName, self, kSpatial, w, ceil_mode), self, kSpatial == 2);
}

template <int kSpatial>
Outputs avg_pool_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                          IntList stride, IntList padding, bool ceil_mode, bool,
                          std::optional<int64_t> divisor_override) {
  constexpr std::string_view kName = kSpatial == 2 ? "avg_pool2d_backward" : "avg_pool3d_backward";
  check_divisor(kName, divisor_override);
  const Windows w = windows(kName, kSpatial, kernel_size, stride, padding, {1});
  check_gradient(kName, grad_output, self, pooled_sizes(kName, self, kSpatial, w, ceil_mode));
  return like_input(self.sizes(), self, kSpatial == 2);
}

template <int kSpatial>
Outputs adaptive_avg_pool(const Tensor& self, IntList output_size) {
  constexpr std::string_view kName = kSpatial == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d";
  check_input(kName, self, kSpatial);
  LS_CHECK(is_floating(self.dtype()), DTypeError, "[{}] expected a floating input, got {}.", kName,
           to_string(self.dtype()));
  if (kSpatial == 3) check_not_empty(kName, self, kSpatial);
  const Dims wanted = each(kName, "output_size", output_size, kSpatial, 0);
  Dims sizes = to_dims(self.sizes());
  for (size_t i = 0; i < kSpatial; ++i) {
    int64_t& size = sizes[sizes.size() - kSpatial + i];
    LS_CHECK(size > 0, ShapeError, "[{}] expected spatial dimensions that are not empty, got {}.",
             kName, self.shape());
    size = wanted[i];
  }
  return like_input(sizes, self, kSpatial == 2);
}

template <int kSpatial>
Outputs adaptive_avg_pool_backward(const Tensor& grad_output, const Tensor& self) {
  constexpr std::string_view kName =
      kSpatial == 2 ? "adaptive_avg_pool2d_backward" : "adaptive_avg_pool3d_backward";
  check_input(kName, self, kSpatial);
  Dims sizes = to_dims(self.sizes());
  LS_CHECK(grad_output.dim() == self.dim(), ShapeError,
           "[{}] expected a gradient with as many dimensions as the input, got {} and {}.", kName,
           grad_output.shape(), self.shape());
  for (size_t i = sizes.size() - kSpatial; i < sizes.size(); ++i) sizes[i] = grad_output.sizes()[i];
  check_gradient(kName, grad_output, self, sizes);
  return like_input(self.sizes(), self, kSpatial == 2);
}

}  // namespace
}  // namespace rules

namespace {

using AvgPool = Tensor(const Tensor&, IntList, IntList, IntList, bool, bool,
                       std::optional<int64_t>);
using AvgPoolBackward = Tensor(const Tensor&, const Tensor&, IntList, IntList, IntList, bool, bool,
                               std::optional<int64_t>);
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
