#include "core/ops/norm/batch_norm_rules.h"

#include "core/base/check.h"
#include "core/ops/norm/statistics_dtype.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

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

void add_output(Outputs& outputs, IntList sizes, DType dtype, bool present = true) {
  OutputSpec& spec = outputs.specs.emplace_back();
  spec.sizes = to_dims(sizes);
  spec.dtype = dtype;
  spec.present = present;
}

DType dtype_or(OptionalTensor tensor, DType otherwise) {
  return tensor ? tensor->dtype() : otherwise;
}

}  // namespace

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

}  // namespace lockstep::rules
