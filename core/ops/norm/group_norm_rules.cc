#include "core/base/check.h"
#include "core/ops/norm/norm_rules.h"
#include "core/ops/norm/statistics_dtype.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

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
  LS_CHECK(statistic.numel() == n * groups, ShapeError,
           "[{}] {} has the wrong shape: expected [{}, {}], got {}.", op, name, n, groups,
           statistic.shape());
}

void add_output(Outputs& outputs, IntList sizes, DType dtype, bool present = true) {
  OutputSpec& spec = outputs.specs.emplace_back();
  spec.sizes = to_dims(sizes);
  spec.dtype = dtype;
  spec.present = present;
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

}  // namespace lockstep::rules
