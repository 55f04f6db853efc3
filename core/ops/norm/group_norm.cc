// Group norm; declared in norm.h.

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/norm/batching_layers.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/norm_projection.h"
#include "core/ops/norm/norm_rules.h"
#include "core/ops/norm/statistics_dtype.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep {

namespace rules {

namespace {

void check_groups(std::string_view op, const Tensor& input, int64_t n, int64_t channels,
                  int64_t positions, int64_t groups) {
  LS_CHECK(is_floating(input.dtype()), DTypeError, "[{}] expected a floating input, got {}.", op,
           to_string(input.dtype()));
  LS_CHECK(groups > 0 && channels % groups == 0, ShapeError,
           "[{}] the channels must divide into the groups: got {} channels and {} groups.", op,
           channels, groups);
  LS_CHECK(count_elements({n, channels, positions}) == input.numel(), ShapeError,
           "[{}] expected {} * {} * {} elements, got an input of shape {}.", op, n, channels,
           positions, input.shape());
}

void check_parameter(std::string_view op, std::string_view name, OptionalTensor parameter,
                     int64_t channels) {
  if (!parameter) return;
  LS_CHECK(same(parameter->sizes(), {channels}), ShapeError,
           "[{}] {} has the wrong shape: expected [{}], got {}.", op, name, channels,
           parameter->shape());
  LS_CHECK(is_floating(parameter->dtype()), DTypeError, "[{}] expected a floating {}, got {}.", op,
           name, to_string(parameter->dtype()));
}

void check_statistic(std::string_view op, std::string_view name, const Tensor& statistic, int64_t n,
                     int64_t groups) {
  LS_CHECK(statistic.numel() == (CheckedInt(op, n) * groups).value(), ShapeError,
           "[{}] {} has the wrong shape: expected [{}, {}], got {}.", op, name, n, groups,
           statistic.shape());
}

// Masks of the tensor arguments that are cast to the input's dtype.
constexpr uint64_t kForward = 0b111;     // input, weight, bias
constexpr uint64_t kBackward = 0b10011;  // all but mean and rstd

}  // namespace

Outputs fused_group_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, int64_t n,
                         int64_t channels, int64_t positions, int64_t groups, double) {
  constexpr std::string_view kName = "group_norm";
  check_groups(kName, input, n, channels, positions, groups);
  check_parameter(kName, "weight", weight, channels);
  check_parameter(kName, "bias", bias, channels);
  const DType statistics = kept_statistics_dtype(input);
  Outputs outputs = one(input.sizes(), input.dtype());
  keep_format(outputs.specs[0], input);
  add_output(outputs, {n, groups}, statistics);
  add_output(outputs, {n, groups}, statistics);
  outputs.compute = input.dtype();
  outputs.cast_mask = kForward;
  return outputs;
}

Outputs native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                   const Tensor& rstd, OptionalTensor weight, int64_t n,
                                   int64_t channels, int64_t positions, int64_t groups,
                                   BoolList output_mask) {
  constexpr std::string_view kName = "native_group_norm_backward";
  check_groups(kName, input, n, channels, positions, groups);
  check_parameter(kName, "weight", weight, channels);
  LS_CHECK(same(grad_out.sizes(), input.sizes()), ShapeError,
           "[{}] the gradient has the wrong shape: expected {}, got {}.", kName, input.shape(),
           grad_out.shape());
  check_statistic(kName, "mean", mean, n, groups);
  check_statistic(kName, "rstd", rstd, n, groups);
  LS_CHECK(mean.dtype() == rstd.dtype() && is_floating(mean.dtype()), DTypeError,
           "[{}] expected mean and rstd of one floating dtype, got {} and {}.", kName,
           to_string(mean.dtype()), to_string(rstd.dtype()));
  const DType parameters = weight ? weight->dtype() : input.dtype();
  Outputs outputs;
  add_output(outputs, input.sizes(), input.dtype(), output_mask[0]);
  keep_format(outputs.specs[0], input);
  add_output(outputs, {channels}, parameters, output_mask[1]);
  add_output(outputs, {channels}, parameters, output_mask[2]);
  outputs.compute = input.dtype();
  outputs.cast_mask = kBackward;
  return outputs;
}

}  // namespace rules

namespace {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

/// The sizes that a group norm is told, from argument `first` of a call on.
struct Groups {
  Groups(const VjpContext& ctx, size_t first)
      : n(ctx.argument<int64_t>(first)),
        channels(ctx.argument<int64_t>(first + 1)),
        positions(ctx.argument<int64_t>(first + 2)),
        groups(ctx.argument<int64_t>(first + 3)) {}
  int64_t n, channels, positions, groups;

  /// [n, groups, channels per group, positions].
  Dims sizes() const { return {n, groups, channels / groups, positions}; }
  /// A parameter [channels] reshaped to broadcast with `sizes()`.
  Tensor parameter(const Tensor& tensor) const {
    return tensor.reshape({1, groups, channels / groups, 1});
  }
};

/// The gradients, given those of the result, mean and rstd, composed of simple operators: slower
/// than the kernel, but differentiable again.
Gradients simple_gradients(const VjpContext& ctx, std::span<const Tensor> grads,
                           const Groups& shape, double eps) {
  const Tensor& input = ctx.saved(0);
  const Tensor& weight = ctx.saved(1);
  const DType dtype = input.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const Dims within{2, 3};
  const Tensor x = as_dtype(input, dtype).reshape(shape.sizes());
  const Tensor centred = x - x.mean(within, true);
  const Tensor rstd = rsqrt(square(centred).mean(within, true) + eps);
  const NormProjection norm{centred * rstd, rstd, within, true};
  const auto statistic = [&](const Tensor& grad) {
    return as_dtype(grad, dtype).reshape({shape.n, shape.groups, 1, 1});
  };
  const double count = static_cast<double>(shape.channels / shape.groups * shape.positions);
  const Tensor g = grads[0].defined() ? as_dtype(grads[0], dtype).reshape(shape.sizes()) : Tensor();

  Gradients gradients(3);
  if (ctx.needs(0)) {
    Tensor dx;
    if (g.defined()) {
      dx = rstd * norm.project(weight.defined() ? g * shape.parameter(as_dtype(weight, dtype)) : g);
    }
    if (grads[1].defined()) dx = plus(dx, (statistic(grads[1]) / count).expand(shape.sizes()));
    if (grads[2].defined()) {  // d rstd / dx = -rstd^2 xhat / count
      dx = plus(dx, norm.xhat * (square(rstd) * statistic(grads[2]) / -count));
    }
    if (dx.defined()) gradients[0] = as_dtype(dx.reshape(input.sizes()), input.dtype());
  }
  const auto over_positions = [&](const Tensor& each, size_t i) {
    return as_dtype(each.sum({0, 3}).reshape({shape.channels}), ctx.input(i).dtype);
  };
  if (ctx.needs(1) && g.defined()) gradients[1] = over_positions(g * norm.xhat, 1);
  if (ctx.needs(2) && g.defined()) gradients[2] = over_positions(g, 2);
  return gradients;
}

bool records() { return !detail::thread_keys.excluded.has(Key::kAutograd); }

}  // namespace

LS_OP(fused_group_norm,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, int64_t, int64_t, int64_t,
                   int64_t, double),
      "_fused_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
      "HxW, int group, float eps) -> (Tensor, Tensor, Tensor)")
    .doc("Group norm, with each group's mean and 1 / sqrt(var + eps), f32 for halves.")
    .structured(rules::fused_group_norm)
    .batching(batching::group_norm)
    .autocast(Autocast::kF32)
    .saves({"input", "weight", "output1", "output2"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const Groups shape(ctx, 3);
      if (records() || grads[1].defined() || grads[2].defined()) {
        return simple_gradients(ctx, grads, shape, ctx.argument<double>(7));
      }
      auto [dx, dw, db] = native_group_norm_backward(
          grads[0], ctx.saved(0), ctx.saved(2), ctx.saved(3), ctx.saved(1), shape.n, shape.channels,
          shape.positions, shape.groups, BoolList{ctx.needs(0), ctx.needs(1), ctx.needs(2)});
      const auto as_input = [&](const Tensor& gradient, size_t i) {
        return gradient.defined() ? as_dtype(gradient, ctx.input(i).dtype) : gradient;
      };
      return Gradients{dx, as_input(dw, 1), as_input(db, 2)};
    });
std::tuple<Tensor, Tensor, Tensor> fused_group_norm(const Tensor& input, OptionalTensor weight,
                                                    OptionalTensor bias, int64_t n,
                                                    int64_t channels, int64_t positions,
                                                    int64_t groups, double eps) {
  return op_fused_group_norm(input, weight, bias, n, channels, positions, groups, eps);
}

LS_OP(native_group_norm,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, int64_t, int64_t, int64_t,
                   int64_t, double),
      "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
      "HxW, int group, float eps) -> (Tensor, Tensor, Tensor)")
    .doc("Group norm, with each group's mean and 1 / sqrt(var + eps) in ATen's dtype.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias, int64_t n,
                  int64_t channels, int64_t positions, int64_t groups, double eps) {
      const auto [out, mean, rstd] =
          fused_group_norm(input, weight, bias, n, channels, positions, groups, eps);
      const DType dtype = returned_statistics_dtype(input, {weight, bias});
      return ThreeTensors(out, as_dtype(mean, dtype), as_dtype(rstd, dtype));
    });
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, OptionalTensor weight,
                                                     OptionalTensor bias, int64_t n,
                                                     int64_t channels, int64_t positions,
                                                     int64_t groups, double eps) {
  return op_native_group_norm(input, weight, bias, n, channels, positions, groups, eps);
}

LS_OP(native_group_norm_out,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, int64_t, int64_t, int64_t,
                   int64_t, double, const Tensor&, const Tensor&, const Tensor&),
      "native_group_norm.out(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, "
      "SymInt HxW, int group, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> "
      "(Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("native_group_norm, written into out0, out1 and out2.")
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias, int64_t N,
                  int64_t C, int64_t HxW, int64_t group, double eps, const Tensor& out0,
                  const Tensor& out1, const Tensor& out2) {
      return write_results(op_native_group_norm(input, weight, bias, N, C, HxW, group, eps), out0,
                           out1, out2);
    });

LS_OP(native_group_norm_backward,
      ThreeTensors(const Tensor&, const Tensor&, const Tensor&, const Tensor&, OptionalTensor,
                   int64_t, int64_t, int64_t, int64_t, BoolList),
      "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? "
      "weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, "
      "Tensor)")
    .doc("Gradients of group norm's input, weight and bias.")
    .structured(rules::native_group_norm_backward)
    .not_differentiable(
        "a derivative that is to be differentiated again is made of simple operators instead");
std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
    OptionalTensor weight, int64_t n, int64_t channels, int64_t positions, int64_t groups,
    BoolList output_mask) {
  return op_native_group_norm_backward(grad_out, input, mean, rstd, weight, n, channels, positions,
                                       groups, output_mask);
}

LS_OP(native_group_norm_backward_out,
      ThreeTensors(const Tensor&, const Tensor&, const Tensor&, const Tensor&, OptionalTensor,
                   int64_t, int64_t, int64_t, int64_t, BoolList, const Tensor&, const Tensor&,
                   const Tensor&),
      "native_group_norm_backward.out(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
      "Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask, *, "
      "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("native_group_norm_backward, written into out0, out1 and out2.")
    .composite([](const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                  const Tensor& rstd, OptionalTensor weight, int64_t N, int64_t C, int64_t HxW,
                  int64_t group, BoolList output_mask, const Tensor& out0, const Tensor& out1,
                  const Tensor& out2) {
      return write_results(op_native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C,
                                                         HxW, group, output_mask),
                           out0, out1, out2);
    });

LS_OP(group_norm, Tensor(const Tensor&, int64_t, OptionalTensor, OptionalTensor, double, bool),
      "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
      "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor")
    .doc("(input - mean) / sqrt(var + eps) * weight + bias over groups of channels.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& input, int64_t num_groups, OptionalTensor weight,
                  OptionalTensor bias, double eps, bool) {
      LS_CHECK(input.dim() >= 2, ShapeError,
               "[group_norm] expected input [n, channels, ...], got shape {}.", input.shape());
      const int64_t positions = count_elements(input.sizes().subspan(2));
      return std::get<0>(fused_group_norm(input, weight, bias, input.size(0), input.size(1),
                                          positions, num_groups, eps));
    });
Tensor group_norm(const Tensor& input, int64_t num_groups, OptionalTensor weight,
                  OptionalTensor bias, double eps) {
  return op_group_norm(input, num_groups, weight, bias, eps, true);
}

}  // namespace lockstep
