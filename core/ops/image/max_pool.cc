// Max pooling; declared in pool.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/image/pool.h"
#include "core/ops/image/pool_rules.h"
#include "core/ops/image/with_height.h"
#include "core/ops/index/index.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

template <int kSpatial>
Outputs max_pool(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                 IntList dilation, bool ceil_mode) {
  constexpr std::string_view kName = kSpatial == 2 ? "max_pool2d" : "max_pool3d";
  const Windows w = windows(kName, kSpatial, kernel_size, stride, padding, dilation);
  const Dims sizes = pooled_sizes(kName, self, kSpatial, w, ceil_mode);
  Outputs outputs = like_input(sizes, self);
  outputs.specs.push_back(outputs.specs[0]);
  outputs.specs[1].dtype = DType::kI64;
  return outputs;
}

template <int kSpatial>
Outputs max_pool_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                          IntList stride, IntList padding, IntList dilation, bool ceil_mode,
                          const Tensor& indices) {
  constexpr std::string_view kName = kSpatial == 2 ? "max_pool2d_backward" : "max_pool3d_backward";
  const Windows w = windows(kName, kSpatial, kernel_size, stride, padding, dilation);
  const Dims sizes = pooled_sizes(kName, self, kSpatial, w, ceil_mode);
  check_gradient(kName, grad_output, self, sizes);
  LS_CHECK(same(indices.sizes(), sizes), ShapeError, "[{}] expected indices of shape {}, got {}.",
           kName, to_string(sizes), to_string(indices));
  LS_CHECK(indices.dtype() == DType::kI64, DTypeError, "[{}] expected int64 indices, got {}.",
           kName, to_string(indices));
  return like_input(self.sizes(), self);
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;
using MaxPool = Tensor(const Tensor&, IntList, IntList, IntList, IntList, bool);
using MaxPoolWithIndices = TwoTensors(const Tensor&, IntList, IntList, IntList, IntList, bool);
using MaxPoolBackward = Tensor(const Tensor&, const Tensor&, IntList, IntList, IntList, IntList,
                               bool, const Tensor&);

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

}  // namespace

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

}  // namespace lockstep
