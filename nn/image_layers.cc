#include "nn/image_layers.h"

#include <cmath>

#include "autograd/checkpoint.h"
#include "core/ops/conv/conv.h"
#include "core/ops/factory/factory.h"
#include "core/ops/norm/batch_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "nn/statistics_log.h"

namespace lockstep::nn {

namespace {

Tensor kaiming_normal(int64_t in, int64_t out, int64_t kernel) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(out * kernel * kernel));
  return initial_values({out, in, kernel, kernel},
                        [deviation](const Tensor& into) { normal_(into, 0.0, deviation); });
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options)
    : weight(register_parameter("weight", kaiming_normal(in / options.groups, out, kernel))),
      options_(options) {
  if (options.bias) bias = register_parameter("bias", initial_values({out}, fill_with(0)));
}

Tensor Conv2d::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        return conv2d(input, weight, bias, {options_.stride}, {options_.padding}, {1},
                      options_.groups);
      },
      x);
}

BatchNorm2d::BatchNorm2d(int64_t width, double epsilon, double momentum)
    : weight(register_parameter("weight", initial_values({width}, fill_with(1)))),
      bias(register_parameter("bias", initial_values({width}, fill_with(0)))),
      running_mean(register_buffer("running_mean", zeros({width}))),
      running_var(register_buffer("running_var", ones({width}))),
      num_batches_tracked(register_buffer("num_batches_tracked", zeros({}, DType::kI64))),
      epsilon_(epsilon),
      momentum_(momentum) {}

Tensor BatchNorm2d::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return run(input); }, x);
}

Tensor BatchNorm2d::run(const Tensor& x) const {
  if (!is_training()) {
    return batch_norm(x, weight, bias, running_mean, running_var, false, momentum_, epsilon_);
  }
  // The original pass has updated the statistics already.
  if (is_recomputing()) return normalise(x, running_mean.clone(), running_var.clone());
  if (statistics_log() != nullptr && !training_norm_) return forward_logged(x, *statistics_log());
  add_(num_batches_tracked, 1);
  return normalise(x, running_mean, running_var);
}

Tensor BatchNorm2d::normalise(const Tensor& x, const Tensor& mean, const Tensor& var) const {
  return training_norm_ ? training_norm_(x, weight, bias, mean, var, momentum_, epsilon_)
                        : batch_norm(x, weight, bias, mean, var, true, momentum_, epsilon_);
}

Tensor BatchNorm2d::forward_logged(const Tensor& x, StatisticsLog& log) const {
  // With a momentum of 1 the running statistics become exactly the batch's: 0 * running + s, where
  // -0 + s is s for every s, including -0.
  const Tensor nothing = full(running_mean.sizes(), -0.0, {DType::kF64, running_mean.device()});
  const auto [result, mean_used, rstd_used, mean, variance] =
      fused_batch_norm(x, weight, bias, nothing, nothing, 1.0, epsilon_);
  log.count(num_batches_tracked);
  log.move(running_mean, mean, momentum_);
  log.move(running_var, variance, momentum_);
  return result;
}

}  // namespace lockstep::nn
