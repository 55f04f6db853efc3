#include "nn/norm_layers.h"

#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/norm/batch_norm.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/rearrange.h"
#include "nn/statistics_log.h"

namespace lockstep::nn {

BatchNorm::BatchNorm(int64_t width, BatchNormOptions options, int64_t least, int64_t most)
    : options_(options), least_(least), most_(most) {
  if (options.affine) {
    weight = register_parameter("weight", initial_values({width}, fill_with(1)));
    bias = register_parameter("bias", initial_values({width}, fill_with(0)));
  }
  if (options.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({width}));
    running_var = register_buffer("running_var", ones({width}));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, DType::kI64));
  }
}

Tensor BatchNorm::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return run(input); }, x);
}

Tensor BatchNorm::run(const Tensor& x) const {
  LS_CHECK(x.dim() >= least_ && x.dim() <= most_, ShapeError,
           "[batch_norm] expected an input of {} dimensions, got {}.",
           least_ == most_ ? std::to_string(least_) : fmt::format("{} or {}", least_, most_),
           x.shape());
  if (!options_.track_running_stats) return normalise(x, {}, {});
  if (!is_training()) {
    return batch_norm(x, weight, bias, running_mean, running_var, false, options_.momentum,
                      options_.eps);
  }
  // The original pass has updated the statistics already.
  if (is_recomputing()) return normalise(x, running_mean.clone(), running_var.clone());
  if (statistics_log() != nullptr && !training_norm_) return forward_logged(x, *statistics_log());
  add_(num_batches_tracked, 1);
  return normalise(x, running_mean, running_var);
}

Tensor BatchNorm::normalise(const Tensor& x, const Tensor& mean, const Tensor& var) const {
  return training_norm_ && is_training()
             ? training_norm_(x, weight, bias, mean, var, options_.momentum, options_.eps)
             : batch_norm(x, weight, bias, mean, var, true, options_.momentum, options_.eps);
}

Tensor BatchNorm::forward_logged(const Tensor& x, StatisticsLog& log) const {
  // With a momentum of 1 the running statistics become exactly the batch's: 0 * running + s, where
  // -0 + s is s for every s, including -0.
  const Tensor nothing = full(running_mean.sizes(), -0.0, {DType::kF64, running_mean.device()});
  const auto [result, mean_used, rstd_used, mean, variance] =
      fused_batch_norm(x, weight, bias, nothing, nothing, 1.0, options_.eps);
  log.count(num_batches_tracked);
  log.move(running_mean, mean, options_.momentum);
  log.move(running_var, variance, options_.momentum);
  return result;
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, GroupNormOptions options)
    : groups_(groups), eps_(options.eps) {
  LS_CHECK(groups > 0 && channels % groups == 0, ShapeError,
           "[group_norm] expected groups that divide {} channels, got {}.", channels, groups);
  if (!options.affine) return;
  weight = register_parameter("weight", initial_values({channels}, fill_with(1)));
  bias = register_parameter("bias", initial_values({channels}, fill_with(0)));
}

Tensor GroupNorm::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) { return group_norm(input, groups_, weight, bias, eps_); }, x);
}

InstanceNorm::InstanceNorm(int64_t width, InstanceNormOptions options, int64_t spatial)
    : width_(width), options_(options), spatial_(spatial) {
  if (options.affine) {
    weight = register_parameter("weight", initial_values({width}, fill_with(1)));
    bias = register_parameter("bias", initial_values({width}, fill_with(0)));
  }
  if (options.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({width}));
    running_var = register_buffer("running_var", ones({width}));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, DType::kI64));
  }
}

Tensor InstanceNorm::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return run(input); }, x);
}

Tensor InstanceNorm::run(const Tensor& x) const {
  const bool batched = x.dim() == spatial_ + 2;
  LS_CHECK(batched || x.dim() == spatial_ + 1, ShapeError,
           "[instance_norm] expected an input of {} or {} dimensions, got {}.", spatial_ + 1,
           spatial_ + 2, x.shape());
  const Tensor samples = batched ? x : x.unsqueeze(0);
  const Tensor result = options_.track_running_stats
                            ? run_tracked(samples)
                            : group_norm(samples, width_, weight, bias, options_.eps);
  return batched ? result : result.squeeze(0);
}

Tensor InstanceNorm::run_tracked(const Tensor& x) const {
  if (!is_training()) {
    return batch_norm(x, weight, bias, running_mean, running_var, false, options_.momentum,
                      options_.eps);
  }
  // A batch norm over one sample whose channels are those of all samples.
  const int64_t batch = x.size(0);
  const auto for_each_sample = [&](const Tensor& y) {
    return y.defined() ? repeat(y, {batch}) : Tensor();
  };
  Dims sizes = to_dims(x.sizes());
  sizes[0] = 1;
  sizes[1] = batch * width_;
  const Tensor mean = for_each_sample(running_mean);
  const Tensor var = for_each_sample(running_var);
  const Tensor result = batch_norm(x.reshape(sizes), for_each_sample(weight), for_each_sample(bias),
                                   mean, var, true, options_.momentum, options_.eps);
  if (!is_recomputing()) {
    const NoGradGuard no_grad;
    running_mean.copy_(mean.view({batch, width_}).mean({0}));
    running_var.copy_(var.view({batch, width_}).mean({0}));
  }
  return result.view(x.sizes());
}

}  // namespace lockstep::nn
