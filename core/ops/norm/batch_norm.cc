#include "core/ops/norm/batch_norm.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/norm/batching_layers.h"
#include "core/ops/norm/norm_projection.h"
#include "core/ops/norm/statistics_dtype.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/kept_layout.h"
#include "core/ops/view/view.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

/// Checks the input and returns its number of channels.
int64_t channels_of(std::string_view op, const Tensor& input) {
  LS_CHECK(is_floating(input.dtype()), DTypeError, "[{}] expected a floating input, got {}.", op,
           to_string(input.dtype()));
  LS_CHECK(input.dim() >= 2, ShapeError,
           "[{}] expected input [batch, channels, ...], got shape {}.", op, input.shape());
  return input.size(1);
}

void check_vector(std::string_view op, std::string_view name, OptionalTensor vector,
                  int64_t channels) {
  if (!vector) return;
  LS_CHECK(vector->dim() == 1 && vector->size(0) == channels, ShapeError,
           "[{}] expected a {} for each channel, shape [{}], got {}.", op, name, channels,
           vector->shape());
  LS_CHECK(is_floating(vector->dtype()), DTypeError, "[{}] expected a floating {}, got {}.", op,
           name, to_string(vector->dtype()));
}

void check_pair(std::string_view op, std::string_view name, OptionalTensor mean,
                OptionalTensor deviation) {
  LS_CHECK(mean.has_value() == deviation.has_value(), ShapeError,
           "[{}] expected both {} mean and variance or neither, got one.", op, name);
}

Outputs fused_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                         OptionalTensor running_mean, OptionalTensor running_var, double, double) {
  constexpr std::string_view kName = "batch_norm";
  const int64_t channels = channels_of(kName, input);
  check_vector(kName, "weight", weight, channels);
  check_vector(kName, "bias", bias, channels);
  check_vector(kName, "running mean", running_mean, channels);
  check_vector(kName, "running variance", running_var, channels);
  check_pair(kName, "running", running_mean, running_var);
  Outputs outputs = one(input.sizes(), input.dtype());
  keep_format(outputs.specs[0], input);
  const DType dtype = kept_statistics_dtype(input);
  add_output(outputs, {channels}, dtype);
  add_output(outputs, {channels}, dtype);
  add_output(outputs, {channels}, dtype_or(running_mean, dtype), running_mean.has_value());
  add_output(outputs, {channels}, dtype_or(running_var, dtype), running_var.has_value());
  return outputs;
}

Outputs batch_norm_no_training(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                               const Tensor& running_mean, const Tensor& running_var, double,
                               double) {
  constexpr std::string_view kName = "batch_norm";
  const int64_t channels = channels_of(kName, input);
  check_vector(kName, "weight", weight, channels);
  check_vector(kName, "bias", bias, channels);
  check_vector(kName, "running mean", running_mean, channels);
  check_vector(kName, "running variance", running_var, channels);
  Outputs outputs = one(input.sizes(), input.dtype());
  keep_format(outputs.specs[0], input);
  const DType dtype =
      returned_batch_statistics_dtype(input, {weight, bias, running_mean, running_var});
  add_output(outputs, {0}, dtype);
  add_output(outputs, {0}, dtype);
  return outputs;
}

Outputs native_batch_norm_backward(const Tensor& grad_out, const Tensor& input,
                                   OptionalTensor weight, OptionalTensor running_mean,
                                   OptionalTensor running_var, OptionalTensor save_mean,
                                   OptionalTensor save_invstd, bool train, double,
                                   BoolList output_mask) {
  constexpr std::string_view kName = "native_batch_norm_backward";
  const int64_t channels = channels_of(kName, input);
  LS_CHECK(same(grad_out.sizes(), input.sizes()), ShapeError,
           "[{}] the gradient has the wrong shape: expected {}, got {}.", kName, input.shape(),
           grad_out.shape());
  check_vector(kName, "weight", weight, channels);
  if (train) {
    check_pair(kName, "saved", save_mean, save_invstd);
    check_vector(kName, "saved mean", save_mean, channels);
    check_vector(kName, "saved deviation", save_invstd, channels);
  } else {
    check_pair(kName, "running", running_mean, running_var);
    check_vector(kName, "running mean", running_mean, channels);
    check_vector(kName, "running variance", running_var, channels);
  }
  LS_CHECK(train ? save_mean.has_value() : running_mean.has_value(), ShapeError,
           "[{}] expected {} statistics, got none.", kName, train ? "saved" : "running");
  const DType parameter = dtype_or(weight, input.dtype());
  Outputs outputs;
  add_output(outputs, input.sizes(), input.dtype(), output_mask[0]);
  keep_format(outputs.specs[0], input);
  add_output(outputs, {channels}, parameter, output_mask[1]);
  add_output(outputs, {channels}, parameter, output_mask[2]);
  outputs.compute = input.dtype();
  outputs.cast_mask = 0b11;  // the gradient and the input
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using FiveTensors = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

/// All dimensions except the channels.
Dims reduced_dims(const Tensor& input) {
  Dims dims{0};
  for (int64_t i = 2; i < input.dim(); ++i) dims.push_back(i);
  return dims;
}

/// `parameter` [channels] reshaped to broadcast with `input`.
Tensor along_channels(const Tensor& parameter, const Tensor& input) {
  Dims sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = parameter.numel();
  return parameter.reshape(sizes);
}

Tensor over_channels(const Tensor& elements, DType dtype) {
  const Tensor result = sum(elements, reduced_dims(elements));
  return result.dtype() == dtype ? result : result.to(dtype);
}

}  // namespace

LS_OP(fused_batch_norm,
      FiveTensors(const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor, OptionalTensor,
                  double, double),
      "_fused_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
      "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
    .doc("Batch norm in training, with the batch's statistics and the running ones after it.")
    .structured(rules::fused_batch_norm)
    .batching(batching::channels)
    .autocast(Autocast::kF32)
    .saves({"input", "weight", "output1", "output2"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      auto [dx, dw, db] = native_batch_norm_backward(
          grad, ctx.saved(0), ctx.saved(1), {}, {}, ctx.saved(2), ctx.saved(3), true,
          ctx.argument<double>(6), BoolList{ctx.needs(0), ctx.needs(1), ctx.needs(2)});
      return Gradients{dx, dw, db, Tensor(), Tensor()};
    });
FiveTensors fused_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                             OptionalTensor running_mean, OptionalTensor running_var,
                             double momentum, double eps) {
  return op_fused_batch_norm(input, weight, bias, running_mean, running_var, momentum, eps);
}

LS_OP(native_batch_norm_legit_no_training,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, const Tensor&, const Tensor&,
                   double, double),
      "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
      "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    .doc("Batch norm with running statistics; the second and third result are empty.")
    .structured(rules::batch_norm_no_training)
    .batching(batching::channels)
    .autocast(Autocast::kF32)
    .saves({"input", "weight", "running_mean", "running_var"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      auto [dx, dw, db] = native_batch_norm_backward(
          grad, ctx.saved(0), ctx.saved(1), ctx.saved(2), ctx.saved(3), {}, {}, false,
          ctx.argument<double>(6), BoolList{ctx.needs(0), ctx.needs(1), ctx.needs(2)});
      return Gradients{dx, dw, db, Tensor(), Tensor()};
    });

LS_OP(native_batch_norm_legit_no_training_out,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, const Tensor&, const Tensor&,
                   double, double, const Tensor&, const Tensor&, const Tensor&),
      "_native_batch_norm_legit_no_training.out(Tensor input, Tensor? weight, Tensor? bias, Tensor "
      "running_mean, Tensor running_var, float momentum, float eps, *, Tensor(a!) out0, Tensor(b!) "
      "out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("_native_batch_norm_legit_no_training, written into out0, out1 and out2.")
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  const Tensor& running_mean, const Tensor& running_var, double momentum,
                  double eps, const Tensor& out0, const Tensor& out1, const Tensor& out2) {
      return write_results(op_native_batch_norm_legit_no_training(input, weight, bias, running_mean,
                                                                  running_var, momentum, eps),
                           out0, out1, out2);
    });

LS_OP(native_batch_norm_backward,
      ThreeTensors(const Tensor&, const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor,
                   OptionalTensor, OptionalTensor, bool, double, BoolList),
      "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? "
      "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, "
      "float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    .doc("Gradients of batch norm's input, weight and bias.")
    .structured(rules::native_batch_norm_backward)
    .batching(batching::channels)
    .saves({"grad_out", "input", "weight", "running_mean", "running_var", "save_mean",
            "save_invstd"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const Tensor& g = ctx.saved(0);
      const Tensor& input = ctx.saved(1);
      const Tensor& weight = ctx.saved(2);
      const bool train = ctx.argument<bool>(7);
      const Tensor mean = along_channels(train ? ctx.saved(5) : ctx.saved(3), input);
      const Tensor rstd = along_channels(
          train ? ctx.saved(6) : rsqrt(ctx.saved(4) + ctx.argument<double>(8)), input);
      const NormProjection norm{(input - mean) * rstd, rstd, reduced_dims(input), true};
      const Tensor scale = weight.defined() ? along_channels(weight, input) : Tensor();
      const Tensor gw = scale.defined() ? g * scale : g;
      const Tensor& v = grads[0];
      Tensor scaled;
      if (v.defined()) scaled = rstd * (train ? norm.project(v) : v);
      const Tensor of_weight = grads[1].defined() ? along_channels(grads[1], input) : Tensor();
      Gradients gradients(ctx.input_count());
      if (ctx.needs(0)) {
        Tensor result = scaled.defined() && scale.defined() ? scaled * scale : scaled;
        if (of_weight.defined()) result = plus(result, norm.xhat * of_weight);
        if (grads[2].defined()) {
          result = plus(result, along_channels(grads[2], input).expand(g.sizes()));
        }
        gradients[0] = result;
      }
      // The batch's statistics are functions of the input, so their gradients go to the input.
      if (ctx.needs(1)) {
        const Tensor moved = of_weight.defined() ? g * of_weight : Tensor();
        if (train) {
          gradients[1] = norm.second(v, gw, moved);
        } else if (moved.defined()) {
          gradients[1] = moved * rstd;
        }
      }
      if (ctx.needs(2) && scaled.defined()) {
        gradients[2] = over_channels(g * scaled, weight.dtype());
      }
      return gradients;
    });
ThreeTensors native_batch_norm_backward(const Tensor& grad_out, const Tensor& input,
                                        OptionalTensor weight, OptionalTensor running_mean,
                                        OptionalTensor running_var, OptionalTensor save_mean,
                                        OptionalTensor save_invstd, bool train, double eps,
                                        BoolList output_mask) {
  return op_native_batch_norm_backward(grad_out, input, weight, running_mean, running_var,
                                       save_mean, save_invstd, train, eps, output_mask);
}

LS_OP(native_batch_norm_backward_out,
      ThreeTensors(const Tensor&, const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor,
                   OptionalTensor, OptionalTensor, bool, double, BoolList, const Tensor&,
                   const Tensor&, const Tensor&),
      "native_batch_norm_backward.out(Tensor grad_out, Tensor input, Tensor? weight, Tensor? "
      "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, "
      "float eps, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> "
      "(Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("native_batch_norm_backward, written into out0, out1 and out2.")
    .composite([](const Tensor& grad_out, const Tensor& input, OptionalTensor weight,
                  OptionalTensor running_mean, OptionalTensor running_var, OptionalTensor save_mean,
                  OptionalTensor save_invstd, bool train, double eps, BoolList output_mask,
                  const Tensor& out0, const Tensor& out1, const Tensor& out2) {
      return write_results(
          op_native_batch_norm_backward(grad_out, input, weight, running_mean, running_var,
                                        save_mean, save_invstd, train, eps, output_mask),
          out0, out1, out2);
    });

namespace {

/// Batch norm that updates the running statistics in place when training.
ThreeTensors with_running(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                          OptionalTensor running_mean, OptionalTensor running_var, bool training,
                          double momentum, double eps) {
  if (!training) {
    LS_CHECK(running_mean && running_var, ShapeError,
             "[batch_norm] without training the running mean and variance are needed: expected "
             "both, got {}. Give them, or set training.",
             running_mean || running_var ? "one" : "none");
    return op_native_batch_norm_legit_no_training(input, weight, bias, *running_mean, *running_var,
                                                  momentum, eps);
  }
  auto [out, mean, rstd, new_mean, new_var] =
      fused_batch_norm(input, weight, bias, running_mean, running_var, momentum, eps);
  if (running_mean) {
    copy_(*running_mean, new_mean);
    copy_(*running_var, new_var);
  }
  return {out, mean, rstd};
}

/// with_running with the statistics in the dtypes that ATen returns.
ThreeTensors native(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                    OptionalTensor running_mean, OptionalTensor running_var, bool training,
                    double momentum, double eps) {
  auto [out, mean, rstd] =
      with_running(input, weight, bias, running_mean, running_var, training, momentum, eps);
  const DType dtype =
      returned_batch_statistics_dtype(input, {weight, bias, running_mean, running_var});
  if (mean.dtype() == dtype) return {out, mean, rstd};
  return {out, mean.to(dtype), rstd.to(dtype)};
}

}  // namespace

LS_OP(native_batch_norm_legit,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, const Tensor&, const Tensor&,
                   bool, double, double),
      "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
      "running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, "
      "Tensor, Tensor)")
    .doc("Batch norm that writes running statistics in place, with the statistics it used.")
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps) {
      return native(input, weight, bias, running_mean, running_var, training, momentum, eps);
    });

LS_OP(native_batch_norm_legit_no_stats,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, bool, double, double),
      "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
      "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    .doc("Batch norm without running statistics, with the statistics it used.")
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias, bool training,
                  double momentum, double eps) {
      return native(input, weight, bias, {}, {}, training, momentum, eps);
    });

LS_OP(native_batch_norm_legit_no_stats_out,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, bool, double, double,
                   const Tensor&, const Tensor&, const Tensor&),
      "_native_batch_norm_legit.no_stats_out(Tensor input, Tensor? weight, Tensor? bias, bool "
      "training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) "
      "save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("_native_batch_norm_legit, written into out, save_mean and save_invstd.")
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias, bool training,
                  double momentum, double eps, const Tensor& out, const Tensor& save_mean,
                  const Tensor& save_invstd) {
      return write_results(
          op_native_batch_norm_legit_no_stats(input, weight, bias, training, momentum, eps), out,
          save_mean, save_invstd);
    });

LS_OP(native_batch_norm,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor, OptionalTensor,
                   bool, double, double),
      "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
      "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    .doc("Batch norm with the statistics it used; in training running ones are written in place.")
    .composite(native);
ThreeTensors native_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                               OptionalTensor running_mean, OptionalTensor running_var,
                               bool training, double momentum, double eps) {
  return op_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                              eps);
}

LS_OP(native_batch_norm_out,
      ThreeTensors(const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor, OptionalTensor,
                   bool, double, double, const Tensor&, const Tensor&, const Tensor&),
      "native_batch_norm.out(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
      "Tensor? running_var, bool training, float momentum, float eps, *, Tensor(a!) out, "
      "Tensor(b!) save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))")
    .doc("native_batch_norm, written into out, save_mean and save_invstd.")
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  OptionalTensor running_mean, OptionalTensor running_var, bool training,
                  double momentum, double eps, const Tensor& out, const Tensor& save_mean,
                  const Tensor& save_invstd) {
      return write_results(op_native_batch_norm(input, weight, bias, running_mean, running_var,
                                                training, momentum, eps),
                           out, save_mean, save_invstd);
    });

LS_OP(batch_norm,
      Tensor(const Tensor&, OptionalTensor, OptionalTensor, OptionalTensor, OptionalTensor, bool,
             double, double, bool),
      "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
      "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor")
    .doc("(input - mean) / sqrt(var + eps) * weight + bias for each channel.")
    .composite([](const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  OptionalTensor running_mean, OptionalTensor running_var, bool training,
                  double momentum, double eps, bool) {
      // ATen takes an empty input of any rank.
      if (input.numel() == 0 && input.dim() < 2) return input.clone();
      return std::get<0>(
          with_running(input, weight, bias, running_mean, running_var, training, momentum, eps));
    });
Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                  OptionalTensor running_mean, OptionalTensor running_var, bool training,
                  double momentum, double eps) {
  return op_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                       true);
}

Tensor batch_norm_reference(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                            double eps) {
  const Dims dims = reduced_dims(input);
  const Tensor centred = input - input.mean(dims, true);
  Tensor result = centred * rsqrt(square(centred).mean(dims, true) + eps);
  if (weight) result = result * along_channels(*weight, input);
  return bias ? result + along_channels(*bias, input) : result;
}

}  // namespace lockstep
