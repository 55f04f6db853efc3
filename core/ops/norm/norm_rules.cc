#include "core/ops/norm/norm_rules.h"

#include "core/base/check.h"
#include "core/ops/norm/statistics_dtype.h"

namespace lockstep::rules {

namespace {

/// Checks the arguments that both norms share and returns the shape of their statistics.
Dims statistics_shape(std::string_view op, const Tensor& input, IntList shape,
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

void add_output(Outputs& outputs, IntList sizes, DType dtype, bool present = true) {
  OutputSpec& spec = outputs.specs.emplace_back();
  spec.sizes = to_dims(sizes);
  spec.dtype = dtype;
  spec.present = present;
}

void check_gradient(std::string_view op, const Tensor& grad_out, const Tensor& input) {
  LS_CHECK(same(grad_out.sizes(), input.sizes()), ShapeError,
           "[{}] the gradient has the wrong shape: expected {}, got {}.", op, input.shape(),
           grad_out.shape());
}

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

DType dtype_or(OptionalTensor tensor, DType otherwise) {
  return tensor ? tensor->dtype() : otherwise;
}

// Masks of the tensor arguments that are cast to the input's dtype.
constexpr uint64_t kInputWeightBias = 0b111;
constexpr uint64_t kLayerNormBackward = 0b110011;  // all but mean and rstd
constexpr uint64_t kRmsNormBackward = 0b1011;      // all but rstd

}  // namespace

Outputs native_layer_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                          OptionalTensor bias, double) {
  const Dims statistics = statistics_shape("layer_norm", input, normalized_shape, weight, bias);
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
  const Dims statistics = statistics_shape(kName, input, normalized_shape, weight, bias);
  check_gradient(kName, grad_out, input);
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
  const Dims statistics = statistics_shape("rms_norm", input, normalized_shape, weight, {});
  Outputs outputs = one(to_dims(input.sizes()), input.dtype());
  add_output(outputs, statistics, kept_statistics_dtype(input));
  outputs.compute = input.dtype();
  return outputs;
}

Outputs fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                IntList normalized_shape, const Tensor& rstd, OptionalTensor weight,
                                BoolList output_mask) {
  constexpr std::string_view kName = "_fused_rms_norm_backward";
  const Dims statistics = statistics_shape(kName, input, normalized_shape, weight, {});
  check_gradient(kName, grad_out, input);
  check_statistic(kName, "rstd", rstd, input, statistics);
  Outputs outputs;
  add_output(outputs, input.sizes(), input.dtype(), output_mask[0]);
  add_output(outputs, normalized_shape, dtype_or(weight, input.dtype()), output_mask[1]);
  outputs.compute = input.dtype();
  outputs.cast_mask = kRmsNormBackward;
  return outputs;
}

}  // namespace lockstep::rules
