#include "core/ops/norm/norm.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/norm/batching_layers.h"
#include "core/ops/norm/norm_projection.h"
#include "core/ops/norm/norm_rules.h"
#include "core/ops/norm/statistics_dtype.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/rule_outputs.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {

Dims norm_statistics_shape(std::string_view op, const Tensor& input, IntList shape,
                           OptionalTensor weight, OptionalTensor bias) {
  LS_CHECK(is_floating(input.dtype()), DTypeError, "[{}] expected a floating input, got {}.", op,
           to_string(input.dtype()));
  const int64_t lead = input.dim() - static_cast<int64_t>(shape.size());
  bool fits = !shape.empty() && lead >= 0;
  for (int64_t i = lead; fits && i < input.dim(); ++i) fits = input.sizes()[i] == shape[i - lead];
  LS_CHECK(fits, ShapeError,
           "[{}] normalized_shape is not the end of the input's shape: expected {} to end in {}.",
           op, input.shape(), to_string(shape));
  const auto check_parameter = [&](std::string_view name, OptionalTensor parameter) {
    if (!parameter) return;
    LS_CHECK(same(parameter->sizes(), shape), ShapeError,
             "[{}] {} has the wrong shape: expected {}, got {}.", op, name, to_string(shape),
             parameter->shape());
    LS_CHECK(is_floating(parameter->dtype()), DTypeError, "[{}] expected a floating {}, got {}.",
             op, name, to_string(parameter->dtype()));
  };
  check_parameter("weight", weight);
  check_parameter("bias", bias);
  Dims sizes = to_dims(input.sizes());
  for (int64_t i = lead; i < input.dim(); ++i) sizes[i] = 1;
  return sizes;
}

void check_norm_gradient(std::string_view op, const Tensor& grad_out, const Tensor& input) {
  LS_CHECK(same(grad_out.sizes(), input.sizes()), ShapeError,
           "[{}] the gradient has the wrong shape: expected {}, got {}.", op, input.shape(),
           grad_out.shape());
}

namespace {

/// Checks a saved statistic's shape and dtype: that in which it was computed, or the input's.
void check_statistic(std::string_view op, std::string_view name, const Tensor& statistic,
                     const Tensor& input, IntList wanted) {
  LS_CHECK(same(statistic.sizes(), wanted), ShapeError,
           "[{}] {} has the wrong shape: expected {}, got {}.", op, name, to_string(wanted),
           statistic.shape());
  LS_CHECK(statistic.dtype() == kept_statistics_dtype(input) || statistic.dtype() == input.dtype(),
           DTypeError, "[{}] {} of {} input must be {}, got {}.", op, name,
           to_string(input.dtype()), to_string(kept_statistics_dtype(input)),
           to_string(statistic.dtype()));
}

// Masks of the tensor arguments that are cast to the input's dtype.
constexpr uint64_t kInputWeightBias = 0b111;
constexpr uint64_t kLayerNormBackward = 0b110011;  // all but mean and rstd
constexpr uint64_t kRmsNormBackward = 0b1011;      // all but rstd

}  // namespace

Outputs native_layer_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                          OptionalTensor bias, double) {
  const Dims statistics =
      norm_statistics_shape("layer_norm", input, normalized_shape, weight, bias);
  Outputs outputs = one(to_dims(input.sizes()), input.dtype());
  const DType dtype = returned_statistics_dtype(input, {weight, bias});
  add_output(outputs, statistics, dtype);
  add_output(outputs, statistics, dtype);
  outputs.compute = input.dtype();
  outputs.cast_mask = kInputWeightBias;
  return outputs;
}

Outputs native_layer_norm_backward(const Tensor& grad_out, const Tensor& input,
                                   IntList normalized_shape, const Tensor& mean, const Tensor& rstd,
                                   OptionalTensor weight, OptionalTensor bias,
                                   BoolList output_mask) {
  constexpr std::string_view kName = "native_layer_norm_backward";
  const Dims statistics = norm_statistics_shape(kName, input, normalized_shape, weight, bias);
  check_norm_gradient(kName, grad_out, input);
  check_statistic(kName, "mean", mean, input, statistics);
  check_statistic(kName, "rstd", rstd, input, statistics);
  Outputs outputs;
  add_output(outputs, input.sizes(), input.dtype(), output_mask[0]);
  add_output(outputs, normalized_shape, dtype_or(weight, input.dtype()), output_mask[1]);
  add_output(outputs, normalized_shape, dtype_or(bias, input.dtype()), output_mask[2]);
  outputs.compute = input.dtype();
  outputs.cast_mask = kLayerNormBackward;
  return outputs;
}

Outputs fused_rms_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                       std::optional<double>) {
  const Dims statistics = norm_statistics_shape("rms_norm", input, normalized_shape, weight, {});
  Outputs outputs = one(to_dims(input.sizes()), input.dtype());
  add_output(outputs, statistics, kept_statistics_dtype(input));
  outputs.compute = input.dtype();
  return outputs;
}

Outputs fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                IntList normalized_shape, const Tensor& rstd, OptionalTensor weight,
                                BoolList output_mask) {
  constexpr std::string_view kName = "_fused_rms_norm_backward";
  const Dims statistics = norm_statistics_shape(kName, input, normalized_shape, weight, {});
  check_norm_gradient(kName, grad_out, input);
  check_statistic(kName, "rstd", rstd, input, statistics);
  Outputs outputs;
  add_output(outputs, input.sizes(), input.dtype(), output_mask[0]);
  add_output(outputs, normalized_shape, dtype_or(weight, input.dtype()), output_mask[1]);
  outputs.compute = input.dtype();
  outputs.cast_mask = kRmsNormBackward;
  return outputs;
}

}  // namespace rules

namespace {

/// The last dimensions, which are normalised.
Dims inner_dims(const Tensor& input, IntList normalized_shape) {
  Dims dims;
  const int64_t count = static_cast<int64_t>(normalized_shape.size());
  for (int64_t i = input.dim() - count; i < input.dim(); ++i) dims.push_back(i);
  return dims;
}

/// Sums `rows` over all dimensions except the normalised ones: the gradient of a parameter.
Tensor over_rows(const Tensor& rows, IntList normalized_shape, DType dtype) {
  const Tensor result = sum_to_size(rows, normalized_shape);
  return result.dtype() == dtype ? result : result.to(dtype);
}

/// input * rstd, or (input - mean) * rstd if a mean is given.
Tensor normalised(const Tensor& input, OptionalTensor mean, const Tensor& rstd) {
  return (mean ? input - *mean : input) * rstd;
}

}  // namespace

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using TwoTensors = std::tuple<Tensor, Tensor>;

LS_OP(native_layer_norm,
      ThreeTensors(const Tensor&, IntList, OptionalTensor, OptionalTensor, double),
      "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
      "float eps) -> (Tensor, Tensor, Tensor)")
    .doc("Layer norm, with each row's mean and 1 / sqrt(var + eps).")
    .structured(rules::native_layer_norm)
    .batching(batching::native_layer_norm)
    .autocast(Autocast::kF32)
    .saves({"input", "weight", "bias", "output1", "output2"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      auto [dx, dw, db] = native_layer_norm_backward(
          grad, ctx.saved(0), ctx.argument<IntList>(1), ctx.saved(3), ctx.saved(4), ctx.saved(1),
          ctx.saved(2), BoolList{ctx.needs(0), ctx.needs(1), ctx.needs(2)});
      return Gradients{dx, dw, db};
    });
std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape,
                                                     OptionalTensor weight, OptionalTensor bias,
                                                     double eps) {
  return op_native_layer_norm(input, normalized_shape, weight, bias, eps);
}

LS_OP(native_layer_norm_out,
      ThreeTensors(const Tensor&, IntList, OptionalTensor, OptionalTensor, double, const Tensor&,
                   const Tensor&, const Tensor&),
      "native_layer_norm.out(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? "
      "bias, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), "
      "Tensor(b!), Tensor(c!))")
    .doc("native_layer_norm, written into out0, out1 and out2.")
    .composite([](const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                  OptionalTensor bias, double eps, const Tensor& out0, const Tensor& out1,
                  const Tensor& out2) {
      return write_results(op_native_layer_norm(input, normalized_shape, weight, bias, eps), out0,
                           out1, out2);
    });

LS_OP(native_layer_norm_backward,
      ThreeTensors(const Tensor&, const Tensor&, IntList, const Tensor&, const Tensor&,
                   OptionalTensor, OptionalTensor, BoolList),
      "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor "
      "mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, "
      "Tensor)")
    .doc("Gradients of layer norm's input, weight and bias.")
    .structured(rules::native_layer_norm_backward)
    .saves({"grad_out", "input", "mean", "rstd", "weight"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const Tensor& g = ctx.saved(0);
      const Tensor& weight = ctx.saved(4);
      const IntList shape = ctx.argument<IntList>(2);
      const NormProjection norm{normalised(ctx.saved(1), ctx.saved(2), ctx.saved(3)), ctx.saved(3),
                                inner_dims(g, shape), true};
      const Tensor gw = weight.defined() ? g * weight : g;
      const Tensor& v = grads[0];
      const Tensor scaled = v.defined() ? norm.rstd * norm.project(v) : Tensor();
      Gradients gradients(ctx.input_count());
      if (ctx.needs(0)) {
        Tensor result = scaled.defined() && weight.defined() ? scaled * weight : scaled;
        if (grads[1].defined()) result = plus(result, norm.xhat * grads[1]);
        if (grads[2].defined()) result = plus(result, grads[2].expand(g.sizes()));
        gradients[0] = result;
      }
      // Mean and rstd are functions of the input, so their gradients go to the input.
      if (ctx.needs(1)) {
        gradients[1] = norm.second(v, gw, grads[1].defined() ? g * grads[1] : Tensor());
      }
      if (ctx.needs(4) && scaled.defined())
        gradients[4] = over_rows(g * scaled, shape, weight.dtype());
      return gradients;
    });
std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(
    const Tensor& grad_out, const Tensor& input, IntList normalized_shape, const Tensor& mean,
    const Tensor& rstd, OptionalTensor weight, OptionalTensor bias, BoolList output_mask) {
  return op_native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias,
                                       output_mask);
}

LS_OP(native_layer_norm_backward_out,
      ThreeTensors(const Tensor&, const Tensor&, IntList, const Tensor&, const Tensor&,
                   OptionalTensor, OptionalTensor, BoolList, const Tensor&, const Tensor&,
                   const Tensor&),
      "native_layer_norm_backward.out(Tensor grad_out, Tensor input, SymInt[] normalized_shape, "
      "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask, *, Tensor(a!) "
      "out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("native_layer_norm_backward, written into out0, out1 and out2.")
    .composite([](const Tensor& grad_out, const Tensor& input, IntList normalized_shape,
                  const Tensor& mean, const Tensor& rstd, OptionalTensor weight,
                  OptionalTensor bias, BoolList output_mask, const Tensor& out0, const Tensor& out1,
                  const Tensor& out2) {
      return write_results(op_native_layer_norm_backward(grad_out, input, normalized_shape, mean,
                                                         rstd, weight, bias, output_mask),
                           out0, out1, out2);
    });

LS_OP(layer_norm, Tensor(const Tensor&, IntList, OptionalTensor, OptionalTensor, double, bool),
      "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
      "float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor")
    .doc("(input - mean) / sqrt(var + eps) * weight + bias over the last dimensions.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                  OptionalTensor bias, double eps, bool) {
      return std::get<0>(native_layer_norm(input, normalized_shape, weight, bias, eps));
    });
Tensor layer_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                  OptionalTensor bias, double eps) {
  return op_layer_norm(input, normalized_shape, weight, bias, eps, true);
}

LS_OP(fused_rms_norm, TwoTensors(const Tensor&, IntList, OptionalTensor, std::optional<double>),
      "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
      "(Tensor, Tensor)")
    .doc("Root mean square norm, with each row's 1 / sqrt(mean square + eps).")
    .structured(rules::fused_rms_norm)
    .batching(batching::fused_rms_norm)
    .autocast(Autocast::kF32)
    .saves({"input", "weight", "output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      auto [dx, dw] =
          fused_rms_norm_backward(grad, ctx.saved(0), ctx.argument<IntList>(1), ctx.saved(2),
                                  ctx.saved(1), BoolList{ctx.needs(0), ctx.needs(1)});
      return Gradients{dx, dw};
    });
std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntList normalized_shape,
                                          OptionalTensor weight, std::optional<double> eps) {
  return op_fused_rms_norm(input, normalized_shape, weight, eps);
}

LS_OP(
    fused_rms_norm_backward,
    TwoTensors(const Tensor&, const Tensor&, IntList, const Tensor&, OptionalTensor, BoolList),
    "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, "
    "Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)")
    .doc("Gradients of the root mean square norm's input and weight.")
    .structured(rules::fused_rms_norm_backward)
    .saves({"grad_out", "input", "rstd", "weight"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const Tensor& g = ctx.saved(0);
      const Tensor& weight = ctx.saved(3);
      const IntList shape = ctx.argument<IntList>(2);
      const NormProjection norm{normalised(ctx.saved(1), {}, ctx.saved(2)), ctx.saved(2),
                                inner_dims(g, shape), false};
      const Tensor gw = weight.defined() ? g * weight : g;
      const Tensor& v = grads[0];
      const Tensor scaled = v.defined() ? norm.rstd * norm.project(v) : Tensor();
      Gradients gradients(ctx.input_count());
      if (ctx.needs(0)) {
        const Tensor result = scaled.defined() && weight.defined() ? scaled * weight : scaled;
        gradients[0] = grads[1].defined() ? plus(result, norm.xhat * grads[1]) : result;
      }
      if (ctx.needs(1)) {
        gradients[1] = norm.second(v, gw, grads[1].defined() ? g * grads[1] : Tensor());
      }
      if (ctx.needs(3) && scaled.defined())
        gradients[3] = over_rows(g * scaled, shape, weight.dtype());
      return gradients;
    });
std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                   IntList normalized_shape, const Tensor& rstd,
                                                   OptionalTensor weight, BoolList output_mask) {
  return op_fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask);
}

LS_OP(rms_norm, Tensor(const Tensor&, IntList, OptionalTensor, std::optional<double>),
      "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
      "Tensor")
    .doc("input / sqrt(mean(input^2) + eps) * weight over the last dimensions.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                  std::optional<double> eps) {
      return std::get<0>(fused_rms_norm(input, normalized_shape, weight, eps));
    });
Tensor rms_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                std::optional<double> eps) {
  return op_rms_norm(input, normalized_shape, weight, eps);
}

Tensor layer_norm_reference(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                            OptionalTensor bias, double eps) {
  const Dims dims = inner_dims(input, normalized_shape);
  const Tensor centred = input - input.mean(dims, true);
  Tensor result = centred * rsqrt(square(centred).mean(dims, true) + eps);
  if (weight) result = result * *weight;
  return bias ? result + *bias : result;
}

Tensor rms_norm_reference(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                          std::optional<double> eps) {
  const Dims dims = inner_dims(input, normalized_shape);
  const double added = eps.value_or(machine_epsilon(input.dtype()));
  const Tensor result = input * rsqrt(square(input).mean(dims, true) + added);
  return weight ? result * *weight : result;
}

}  // namespace lockstep
