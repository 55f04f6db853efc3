#include "core/ops/norm/stream_norm.h"

#include "core/base/check.h"
#include "core/dispatch/arrived_gradient.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/norm/batching_layers.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/norm_projection.h"
#include "core/ops/norm/norm_rules.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/rule_outputs.h"

namespace lockstep {

namespace rules {
namespace {

bool is_half(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

/// Whether tensors of `dtype` may accompany a stream: its own dtype, or halves beside f32.
bool accompanies(DType dtype, DType stream) {
  return dtype == stream || (stream == DType::kF32 && is_half(dtype));
}

void check_stream(std::string_view op, const Tensor& stream) {
  LS_CHECK(stream.dtype() == DType::kF32 || stream.dtype() == DType::kF64, DTypeError,
           "[{}] expected a stream in float32 or float64, got {}. layer_norm and rms_norm take "
           "other dtypes.",
           op, to_string(stream.dtype()));
}

void check_companion(std::string_view op, std::string_view name, DType dtype, DType stream) {
  LS_CHECK(accompanies(dtype, stream), DTypeError,
           "[{}] {} has the wrong dtype: expected {}{}, got {}. Cast it with to(dtype).", op, name,
           to_string(stream), stream == DType::kF32 ? ", bfloat16 or float16" : "",
           to_string(dtype));
}

void check_parameter(std::string_view op, std::string_view name, OptionalTensor parameter,
                     DType stream) {
  if (!parameter) return;
  LS_CHECK(parameter->dtype() == stream, DTypeError,
           "[{}] expected a {} of the stream's dtype {}, got {}. Cast it with to(dtype).", op, name,
           to_string(stream), to_string(parameter->dtype()));
}

/// Checks the arguments that both operators share. Returns the result, then the sum if there is
/// one, mean and 1 / deviation.
Outputs normed(std::string_view op, const Tensor& stream, bool has_sum, IntList shape,
               OptionalTensor weight, OptionalTensor bias, bool centre,
               std::optional<DType> dtype) {
  const Dims statistics = norm_statistics_shape(op, stream, shape, weight, bias);
  check_stream(op, stream);
  check_parameter(op, "weight", weight, stream.dtype());
  check_parameter(op, "bias", bias, stream.dtype());
  LS_CHECK(centre || !bias, ShapeError, "[{}] RMS norm takes no bias, got one. Add it after it.",
           op);
  const DType result = dtype.value_or(stream.dtype());
  check_companion(op, "the result", result, stream.dtype());
  Outputs outputs = one(stream.sizes(), result);
  if (has_sum) add_output(outputs, stream.sizes(), stream.dtype());
  add_output(outputs, statistics, stream.dtype(), centre);
  add_output(outputs, statistics, stream.dtype());
  return outputs;
}

Outputs stream_norm(const Tensor& stream, IntList normalized_shape, OptionalTensor weight,
                    OptionalTensor bias, double, bool centre, std::optional<DType> dtype) {
  return normed("stream_norm", stream, false, normalized_shape, weight, bias, centre, dtype);
}

Outputs stream_sum_norm(const Tensor& stream, const Tensor& branch, IntList normalized_shape,
                        OptionalTensor weight, OptionalTensor bias, double, bool centre,
                        std::optional<DType> dtype) {
  constexpr std::string_view kName = "stream_sum_norm";
  Outputs outputs = normed(kName, stream, true, normalized_shape, weight, bias, centre, dtype);
  LS_CHECK(same(branch.sizes(), stream.sizes()), ShapeError,
           "[{}] expected a branch of the stream's shape {}, got {}.", kName, stream.shape(),
           branch.shape());
  check_companion(kName, "the branch", branch.dtype(), stream.dtype());
  return outputs;
}

void check_statistic(std::string_view op, std::string_view name, const Tensor& statistic,
                     const Tensor& input, IntList wanted) {
  LS_CHECK(same(statistic.sizes(), wanted) && statistic.dtype() == input.dtype(), ShapeError,
           "[{}] {} is not a statistic of the input: expected {} {}, got {} {}.", op, name,
           to_string(input.dtype()), to_string(wanted), to_string(statistic.dtype()),
           statistic.shape());
}

Outputs stream_norm_backward(const Tensor& grad_out, OptionalTensor carried, const Tensor& input,
                             IntList normalized_shape, OptionalTensor mean, const Tensor& rstd,
                             OptionalTensor weight, std::optional<DType> branch_dtype,
                             BoolList output_mask) {
  constexpr std::string_view kName = "stream_norm_backward";
  const Dims statistics = norm_statistics_shape(kName, input, normalized_shape, weight, {});
  const DType dtype = input.dtype();
  check_stream(kName, input);
  check_norm_gradient(kName, grad_out, input);
  check_companion(kName, "the gradient", grad_out.dtype(), dtype);
  if (carried) {
    check_norm_gradient(kName, *carried, input);
    check_parameter(kName, "carried gradient", carried, dtype);
  }
  check_parameter(kName, "weight", weight, dtype);
  if (mean) check_statistic(kName, "mean", *mean, input, statistics);
  check_statistic(kName, "rstd", rstd, input, statistics);
  const DType branch = branch_dtype.value_or(dtype);
  check_companion(kName, "the branch", branch, dtype);
  Outputs outputs;
  add_output(outputs, input.sizes(), dtype, output_mask[0]);
  add_output(outputs, input.sizes(), branch, output_mask[1]);
  add_output(outputs, normalized_shape, dtype, output_mask[2]);
  add_output(outputs, normalized_shape, dtype, output_mask[3]);
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;

OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

Tensor parameter_in(OptionalTensor parameter, DType dtype) {
  return parameter ? as_dtype(*parameter, dtype) : Tensor();
}

/// Whether the operators of this file take a stream of this dtype.
bool is_taken(DType stream) { return stream == DType::kF32 || stream == DType::kF64; }

Tensor norm_of_stream(const Tensor& stream, IntList shape, OptionalTensor weight,
                      OptionalTensor bias, double eps, bool centre, DType dtype) {
  if (is_taken(stream.dtype())) {
    const Tensor scale = parameter_in(weight, stream.dtype());
    const Tensor shift = parameter_in(bias, stream.dtype());
    return std::get<0>(
        stream_norm(stream, shape, optional(scale), optional(shift), eps, centre, dtype));
  }
  const Tensor normed =
      centre ? layer_norm(stream, shape, weight, bias, eps) : rms_norm(stream, shape, weight, eps);
  return as_dtype(normed, dtype);
}

NormedSum norm_of_sum(const Tensor& stream, const Tensor& branch, IntList shape,
                      OptionalTensor weight, OptionalTensor bias, double eps, bool centre,
                      DType dtype) {
  if (is_taken(stream.dtype()) && rules::accompanies(branch.dtype(), stream.dtype())) {
    const Tensor scale = parameter_in(weight, stream.dtype());
    const Tensor shift = parameter_in(bias, stream.dtype());
    auto [normed, sum, mean, rstd] = stream_sum_norm(stream, branch, shape, optional(scale),
                                                     optional(shift), eps, centre, dtype);
    return {std::move(normed), std::move(sum)};
  }
  const Tensor sum = stream + branch;
  return {norm_of_stream(sum, shape, weight, bias, eps, centre, dtype), sum};
}

Dims inner_dims(const Tensor& input, IntList normalized_shape) {
  Dims dims;
  const int64_t count = static_cast<int64_t>(normalized_shape.size());
  for (int64_t i = input.dim() - count; i < input.dim(); ++i) dims.push_back(i);
  return dims;
}

}  // namespace

LS_OP(stream_norm,
      ThreeTensors(const Tensor&, IntList, OptionalTensor, OptionalTensor, double, bool,
                   std::optional<DType>),
      "stream_norm(Tensor stream, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float "
      "eps, bool centre, ScalarType? dtype=None) -> (Tensor, Tensor, Tensor)")
    .doc("Layer norm (centre) or RMS norm of a residual stream, in dtype, and its statistics.")
    .structured(rules::stream_norm)
    .batching(batching::stream_norm)
    .saves({"stream", "weight", "output1", "output2"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor carried = ctx.needs(0) ? take_arrived_gradient(0) : Tensor();
      auto [dx, branch, dw, db] = stream_norm_backward(
          grad, optional(carried), ctx.saved(0), ctx.argument<IntList>(1), optional(ctx.saved(2)),
          ctx.saved(3), optional(ctx.saved(1)), std::nullopt,
          BoolList{ctx.needs(0), false, ctx.needs(1), ctx.needs(2)});
      return Gradients{dx, dw, db};
    });
std::tuple<Tensor, Tensor, Tensor> stream_norm(const Tensor& stream, IntList normalized_shape,
                                               OptionalTensor weight, OptionalTensor bias,
                                               double eps, bool centre,
                                               std::optional<DType> dtype) {
  return op_stream_norm(stream, normalized_shape, weight, bias, eps, centre, dtype);
}

LS_OP(stream_sum_norm,
      FourTensors(const Tensor&, const Tensor&, IntList, OptionalTensor, OptionalTensor, double,
                  bool, std::optional<DType>),
      "stream_sum_norm(Tensor stream, Tensor branch, SymInt[] normalized_shape, Tensor? weight, "
      "Tensor? bias, float eps, bool centre, ScalarType? dtype=None) -> (Tensor, Tensor, Tensor, "
      "Tensor)")
    .doc("stream_norm of stream + branch, with that sum as the second result.")
    .structured(rules::stream_sum_norm)
    .batching(batching::stream_sum_norm)
    .saves({"output1", "weight", "output2", "output3"})
    .differentiable_outputs(0b11)
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const DType stream = ctx.input(0).dtype;
      const DType branch = ctx.input(1).dtype;
      if (!grads[0].defined()) {  // the result was not used
        return Gradients{grads[1], ctx.needs(1) ? as_dtype(grads[1], branch) : Tensor(), Tensor(),
                         Tensor()};
      }
      // A branch in the stream's dtype shares the stream's gradient.
      const bool apart = branch != stream;
      auto [dx, narrow, dw, db] =
          stream_norm_backward(grads[0], optional(grads[1]), ctx.saved(0), ctx.argument<IntList>(2),
                               optional(ctx.saved(2)), ctx.saved(3), optional(ctx.saved(1)), branch,
                               BoolList{ctx.needs(0) || (ctx.needs(1) && !apart),
                                        ctx.needs(1) && apart, ctx.needs(2), ctx.needs(3)});
      return Gradients{ctx.needs(0) ? dx : Tensor(), apart ? narrow : dx, dw, db};
    });
std::tuple<Tensor, Tensor, Tensor, Tensor> stream_sum_norm(
    const Tensor& stream, const Tensor& branch, IntList normalized_shape, OptionalTensor weight,
    OptionalTensor bias, double eps, bool centre, std::optional<DType> dtype) {
  return op_stream_sum_norm(stream, branch, normalized_shape, weight, bias, eps, centre, dtype);
}

LS_OP(stream_norm_backward,
      FourTensors(const Tensor&, OptionalTensor, const Tensor&, IntList, OptionalTensor,
                  const Tensor&, OptionalTensor, std::optional<DType>, BoolList),
      "stream_norm_backward(Tensor grad_out, Tensor? carried, Tensor input, SymInt[] "
      "normalized_shape, Tensor? mean, Tensor rstd, Tensor? weight, ScalarType? branch_dtype, "
      "bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor)")
    .doc("Gradients of stream_norm, with the gradient that the stream carried added.")
    .structured(rules::stream_norm_backward)
    .batching(batching::stream_norm_backward)
    .saves({"grad_out", "input", "mean", "rstd", "weight"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const Tensor& input = ctx.saved(1);
      const Tensor& mean = ctx.saved(2);
      const Tensor& rstd = ctx.saved(3);
      const Tensor& weight = ctx.saved(4);
      const DType dtype = ctx.input(2).dtype;
      // The branch's gradient is the stream's, rounded.
      const Tensor narrow = grads[1].defined() ? as_dtype(grads[1], dtype) : Tensor();
      const Tensor v = plus(grads[0], narrow);
      Gradients gradients(ctx.input_count());
      if (ctx.needs(1)) gradients[1] = v;
      if (!ctx.needs(0) && !ctx.needs(2) && !ctx.needs(5)) return gradients;
      const IntList shape = ctx.argument<IntList>(3);
      const Tensor g = as_dtype(ctx.saved(0), dtype);
      const NormProjection norm{(mean.defined() ? input - mean : input) * rstd, rstd,
                                inner_dims(input, shape), mean.defined()};
      const Tensor gw = weight.defined() ? g * weight : g;
      const Tensor scaled = v.defined() ? norm.rstd * norm.project(v) : Tensor();
      if (ctx.needs(0)) {
        Tensor result = scaled.defined() && weight.defined() ? scaled * weight : scaled;
        if (grads[2].defined()) result = plus(result, norm.xhat * grads[2]);
        if (grads[3].defined()) result = plus(result, grads[3].expand(g.sizes()));
        if (result.defined()) gradients[0] = as_dtype(result, ctx.input(0).dtype);
      }
      // Mean and rstd are functions of the input, so their gradients go to the input.
      if (ctx.needs(2)) {
        gradients[2] = norm.second(v, gw, grads[2].defined() ? g * grads[2] : Tensor());
      }
      if (ctx.needs(5) && scaled.defined()) gradients[5] = sum_to_size(g * scaled, shape);
      return gradients;
    });
std::tuple<Tensor, Tensor, Tensor, Tensor> stream_norm_backward(
    const Tensor& grad_out, OptionalTensor carried, const Tensor& input, IntList normalized_shape,
    OptionalTensor mean, const Tensor& rstd, OptionalTensor weight,
    std::optional<DType> branch_dtype, BoolList output_mask) {
  return op_stream_norm_backward(grad_out, carried, input, normalized_shape, mean, rstd, weight,
                                 branch_dtype, output_mask);
}

Tensor layer_norm_of_stream(const Tensor& stream, IntList normalized_shape, OptionalTensor weight,
                            OptionalTensor bias, double eps, DType dtype) {
  return norm_of_stream(stream, normalized_shape, weight, bias, eps, true, dtype);
}
NormedSum layer_norm_of_sum(const Tensor& stream, const Tensor& branch, IntList normalized_shape,
                            OptionalTensor weight, OptionalTensor bias, double eps, DType dtype) {
  return norm_of_sum(stream, branch, normalized_shape, weight, bias, eps, true, dtype);
}
Tensor rms_norm_of_stream(const Tensor& stream, IntList normalized_shape, OptionalTensor weight,
                          double eps, DType dtype) {
  return norm_of_stream(stream, normalized_shape, weight, {}, eps, false, dtype);
}
NormedSum rms_norm_of_sum(const Tensor& stream, const Tensor& branch, IntList normalized_shape,
                          OptionalTensor weight, double eps, DType dtype) {
  return norm_of_sum(stream, branch, normalized_shape, weight, {}, eps, false, dtype);
}

Tensor stream_norm_reference(const Tensor& stream, IntList normalized_shape, OptionalTensor weight,
                             OptionalTensor bias, double eps, bool centre, DType dtype) {
  const Tensor normed = centre ? layer_norm_reference(stream, normalized_shape, weight, bias, eps)
                               : rms_norm_reference(stream, normalized_shape, weight, eps);
  return as_dtype(normed, dtype);
}
NormedSum stream_sum_norm_reference(const Tensor& stream, const Tensor& branch,
                                    IntList normalized_shape, OptionalTensor weight,
                                    OptionalTensor bias, double eps, bool centre, DType dtype) {
  const Tensor sum = stream + branch;
  return {stream_norm_reference(sum, normalized_shape, weight, bias, eps, centre, dtype), sum};
}

}  // namespace lockstep
