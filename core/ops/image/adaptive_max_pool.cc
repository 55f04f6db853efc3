// Max pooling of even and of random windows, and its inverse; declared in pool.h.

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/image/pool.h"
#include "core/ops/image/pool_rules.h"
#include "core/ops/image/with_height.h"
#include "core/ops/index/index.h"
#include "core/ops/index/scatter.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

Outputs with_places(const Dims& sizes, const Tensor& self, bool keeps_format) {
  Outputs outputs = like_input(sizes, self, keeps_format);
  outputs.specs.push_back(outputs.specs[0]);
  outputs.specs[1].dtype = DType::kI64;
  outputs.specs[1].exact_dtype = true;
  return outputs;
}

template <int kSpatial>
Outputs adaptive_max_pool(const Tensor& self, IntList output_size) {
  constexpr std::string_view kName = kSpatial == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d";
  check_input(kName, self, kSpatial);
  check_not_empty(kName, self, kSpatial);
  const Dims wanted = each(kName, "output_size", output_size, kSpatial, 0);
  Dims sizes = to_dims(self.sizes());
  for (size_t i = 0; i < kSpatial; ++i) sizes[sizes.size() - kSpatial + i] = wanted[i];
  return with_places(sizes, self, true);
}

Outputs fractional_max_pool2d(const Tensor& self, IntList kernel_size, IntList output_size,
                              const Tensor& random_samples) {
  constexpr std::string_view kName = "fractional_max_pool2d";
  check_input(kName, self, 2);
  check_not_empty(kName, self, 2);
  LS_CHECK(is_floating(self.dtype()) && random_samples.dtype() == self.dtype(), DTypeError,
           "[{}] expected input and samples of one floating dtype, got {} and {}.", kName,
           to_string(self), to_string(random_samples));
  const Dims kernel = each(kName, "kernel_size", kernel_size, 2, 1);
  const Dims wanted = each(kName, "output_size", output_size, 2, 1);
  Dims sizes = to_dims(self.sizes());
  const int64_t batch = self.dim() == 4 ? sizes[0] : 1;
  const int64_t channels = self.size(-3);
  LS_CHECK(random_samples.dim() == 3 && random_samples.size(0) >= batch &&
               random_samples.size(1) == channels && random_samples.size(2) == 2,
           ShapeError, "[{}] expected samples [{}, {}, 2], got shape {}.", kName, batch, channels,
           random_samples.shape());
  for (size_t i = 0; i < 2; ++i) {
    int64_t& size = sizes[sizes.size() - 2 + i];
    LS_CHECK((CheckedInt(kName, wanted[i]) + kernel[i]).value() - 1 <= size, ShapeError,
             "[{}] {} windows of {} do not fit into spatial dimension {} of size {}.", kName,
             wanted[i], kernel[i], i, size);
    size = wanted[i];
  }
  return with_places(sizes, self, false);
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;

/// Zeros of the input's shape to which each gradient is added at the place of its maximum.
template <int kSpatial>
Tensor at_places(VjpContext& ctx, const Tensor& grad) {
  const IntList sizes = ctx.sizes(0);
  Dims flat = to_dims(sizes.first(sizes.size() - kSpatial));
  flat.push_back(count_elements(sizes.last(kSpatial)));
  const Tensor places = ctx.saved(0).flatten(-kSpatial);
  return scatter_add(zeros(flat, grad.options()), -1, places, grad.flatten(-kSpatial))
      .reshape(sizes);
}
template <int kSpatial>
Gradients give_to_places(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] { return at_places<kSpatial>(ctx, grad); });
}

/// Zeros with the elements of self at their places in the flattened spatial dimensions.
Tensor unpooled(std::string_view op, const Tensor& self, const Tensor& indices, IntList output_size,
                size_t spatial) {
  rules::check_input(op, self, spatial);
  rules::check_not_empty(op, self, spatial);
  const Dims wanted = rules::each(op, "output_size", output_size, spatial, 1);
  LS_CHECK(indices.dtype() == DType::kI64, DTypeError, "[{}] expected int64 indices, got {}.", op,
           to_string(indices));
  LS_CHECK(same(indices.sizes(), self.sizes()), ShapeError,
           "[{}] expected an index for each element: shape {}, got {}.", op, self.shape(),
           indices.shape());
  const int64_t first = self.dim() - static_cast<int64_t>(spatial);
  Dims flat = to_dims(self.sizes().first(static_cast<size_t>(first)));
  Dims sizes = flat;
  flat.push_back(count_elements(wanted));
  for (const int64_t size : wanted) sizes.push_back(size);
  const Tensor nothing = zeros(flat, self.options());
  return scatter(nothing, -1, indices.flatten(first), self.flatten(first)).reshape(sizes);
}

}  // namespace

LS_OP(adaptive_max_pool2d, TwoTensors(const Tensor&, IntList),
      "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)")
    .doc(
        "Largest elements of the windows that cut two spatial dimensions evenly, and their "
        "indices.")
    .structured(rules::adaptive_max_pool<2>)
    .batching(batching::images_2d)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative(give_to_places<2>);
TwoTensors adaptive_max_pool2d(const Tensor& self, IntList output_size) {
  return op_adaptive_max_pool2d(self, output_size);
}
LS_OP(adaptive_max_pool2d_out, TwoTensors(const Tensor&, IntList, const Tensor&, const Tensor&),
      "adaptive_max_pool2d.out(Tensor self, int[2] output_size, *, Tensor(a!) out, Tensor(b!) "
      "indices) -> (Tensor(a!), Tensor(b!))")
    .doc("adaptive_max_pool2d, written into out and indices.")
    .composite([](const Tensor& self, IntList output_size, const Tensor& out,
                  const Tensor& indices) {
      return write_results(op_adaptive_max_pool2d(self, output_size), out, indices);
    });
LS_OP(adaptive_max_pool3d, TwoTensors(const Tensor&, IntList),
      "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)")
    .doc(
        "Largest elements of the windows that cut three spatial dimensions evenly, and their "
        "indices.")
    .structured(rules::adaptive_max_pool<3>)
    .batching(batching::images_3d)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative(give_to_places<3>);
TwoTensors adaptive_max_pool3d(const Tensor& self, IntList output_size) {
  return op_adaptive_max_pool3d(self, output_size);
}
LS_OP(adaptive_max_pool3d_out, TwoTensors(const Tensor&, IntList, const Tensor&, const Tensor&),
      "adaptive_max_pool3d.out(Tensor self, int[3] output_size, *, Tensor(a!) out, Tensor(b!) "
      "indices) -> (Tensor(a!), Tensor(b!))")
    .doc("adaptive_max_pool3d, written into out and indices.")
    .composite([](const Tensor& self, IntList output_size, const Tensor& out,
                  const Tensor& indices) {
      return write_results(op_adaptive_max_pool3d(self, output_size), out, indices);
    });
LS_OP(adaptive_max_pool1d, TwoTensors(const Tensor&, IntList),
      "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
    .doc(
        "Largest elements of the windows that cut one spatial dimension evenly, and their "
        "indices.")
    .composite([](const Tensor& self, IntList output_size) {
      const auto [values, indices] = op_adaptive_max_pool2d(
          with_height("adaptive_max_pool1d", self), with_height(output_size, 1));
      return TwoTensors(values.squeeze(-2), indices.squeeze(-2));
    });
TwoTensors adaptive_max_pool1d(const Tensor& self, IntList output_size) {
  return op_adaptive_max_pool1d(self, output_size);
}

LS_OP(fractional_max_pool2d, TwoTensors(const Tensor&, IntList, IntList, const Tensor&),
      "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
      "random_samples) -> (Tensor, Tensor)")
    .doc("Largest elements of windows at random distances, and their indices.")
    .structured(rules::fractional_max_pool2d)
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return at_places<2>(ctx, grad); }, [] { return Tensor(); });
    });
TwoTensors fractional_max_pool2d(const Tensor& self, IntList kernel_size, IntList output_size,
                                 const Tensor& random_samples) {
  return op_fractional_max_pool2d(self, kernel_size, output_size, random_samples);
}
LS_OP(fractional_max_pool2d_out,
      TwoTensors(const Tensor&, IntList, IntList, const Tensor&, const Tensor&, const Tensor&),
      "fractional_max_pool2d.output(Tensor self, int[2] kernel_size, int[2] output_size, "
      "Tensor random_samples, *, Tensor(a!) output, Tensor(b!) indices) -> (Tensor(a!), "
      "Tensor(b!))")
    .doc("fractional_max_pool2d, written into output and indices.")
    .composite([](const Tensor& self, IntList kernel_size, IntList output_size,
                  const Tensor& random_samples, const Tensor& output, const Tensor& indices) {
      return write_results(op_fractional_max_pool2d(self, kernel_size, output_size, random_samples),
                           output, indices);
    });

LS_OP(max_unpool2d, Tensor(const Tensor&, const Tensor&, IntList),
      "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor")
    .doc("Zeros with each element at its index into two spatial dimensions.")
    .composite([](const Tensor& self, const Tensor& indices, IntList output_size) {
      return unpooled("max_unpool2d", self, indices, output_size, 2);
    });
Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntList output_size) {
  return op_max_unpool2d(self, indices, output_size);
}
LS_OP(max_unpool2d_out, const Tensor&(const Tensor&, const Tensor&, IntList, const Tensor&),
      "max_unpool2d.out(Tensor self, Tensor indices, SymInt[2] output_size, *, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("max_unpool2d, written into out.")
    .composite([](const Tensor& self, const Tensor& indices, IntList output_size,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_max_unpool2d(self, indices, output_size));
    });
LS_OP(max_unpool3d, Tensor(const Tensor&, const Tensor&, IntList, IntList, IntList),
      "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] "
      "padding) -> Tensor")
    .doc("Zeros with each element at its index into three spatial dimensions.")
    .composite([](const Tensor& self, const Tensor& indices, IntList output_size, IntList stride,
                  IntList padding) {
      rules::each("max_unpool3d", "stride", stride, 3, 1);
      rules::each("max_unpool3d", "padding", padding, 3, 0);
      return unpooled("max_unpool3d", self, indices, output_size, 3);
    });
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntList output_size, IntList stride,
                    IntList padding) {
  return op_max_unpool3d(self, indices, output_size, stride, padding);
}
LS_OP(max_unpool3d_out,
      const Tensor&(const Tensor&, const Tensor&, IntList, IntList, IntList, const Tensor&),
      "max_unpool3d.out(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, "
      "int[3] padding, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("max_unpool3d, written into out.")
    .composite([](const Tensor& self, const Tensor& indices, IntList output_size, IntList stride,
                  IntList padding, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_max_unpool3d(self, indices, output_size, stride, padding));
    });

}  // namespace lockstep
