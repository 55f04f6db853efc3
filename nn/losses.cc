#include "nn/losses.h"

#include <cmath>
#include <numbers>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/loss/ctc_loss.h"
#include "core/ops/loss/loss_likelihood.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep::nn {

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyOptions options) : options_(std::move(options)) {
  if (options_.weight.defined()) weight = register_buffer("weight", options_.weight);
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& scores, const Tensor& classes) {
        return cross_entropy_loss(scores, classes, weight, options_.reduction,
                                  options_.ignore_index, options_.label_smoothing);
      },
      input, target);
}

NLLLoss::NLLLoss(NLLOptions options) : options_(std::move(options)) {
  if (options_.weight.defined()) weight = register_buffer("weight", options_.weight);
}

Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& scores, const Tensor& classes) {
        return nll_loss(scores, classes, weight, options_.reduction, options_.ignore_index);
      },
      input, target);
}

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y) { return mse_loss(x, y, reduction_); }, input,
      target);
}

Tensor L1Loss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward([this](const Tensor& x, const Tensor& y) { return l1_loss(x, y, reduction_); },
                     input, target);
}

Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y) { return smooth_l1_loss(x, y, reduction_, beta_); },
      input, target);
}

Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y) { return huber_loss(x, y, reduction_, delta_); },
      input, target);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(BCEWithLogitsOptions options) : reduction_(options.reduction) {
  if (options.weight.defined()) weight = register_buffer("weight", std::move(options.weight));
  if (options.pos_weight.defined()) {
    pos_weight = register_buffer("pos_weight", std::move(options.pos_weight));
  }
}

Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y) {
        return binary_cross_entropy_with_logits(x, y, weight, pos_weight, reduction_);
      },
      input, target);
}

Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y) {
        if (!options_.batch_mean) return kl_div(x, y, options_.reduction, options_.log_target);
        LS_CHECK(x.dim() > 0, ShapeError,
                 "[kl_div] batch_mean: expected a batch, got a 0-d tensor.");
        return kl_div(x, y, Reduction::kSum, options_.log_target) / x.size(0);
      },
      input, target);
}

BCELoss::BCELoss(BCEOptions options) : reduction_(options.reduction) {
  if (options.weight.defined()) weight = register_buffer("weight", std::move(options.weight));
}

Tensor BCELoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y) {
        return binary_cross_entropy(x, y, weight, reduction_);
      },
      input, target);
}

Tensor PoissonNLLLoss::forward(const Tensor& input, const Tensor& target) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y) {
        return poisson_nll_loss(x, y, options_.log_input, options_.full, options_.eps,
                                options_.reduction);
      },
      input, target);
}

Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                        IntList target_lengths) const {
  return run_forward(
      [&](const Tensor& scores, const Tensor& classes) {
        return ctc_loss(scores, classes, input_lengths, target_lengths, options_.blank,
                        options_.reduction, options_.zero_infinity);
      },
      log_probs, targets);
}

Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target,
                                const Tensor& var) const {
  return run_forward(
      [this](const Tensor& x, const Tensor& y, const Tensor& variance) {
        // Clamped in its value only, as PyTorch does: the gradient passes.
        Tensor shift;
        {
          const NoGradGuard no_grad;
          shift = clamp_min(variance, options_.eps) - variance;
        }
        const Tensor bounded = variance + shift;
        Tensor loss = (log(bounded) + square(x - y) / bounded) * 0.5;
        if (options_.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
        switch (options_.reduction) {
          case Reduction::kNone:
            return loss;
          case Reduction::kSum:
            return loss.sum();
          case Reduction::kMean:
            break;
        }
        return loss.mean();
      },
      input, target, var);
}

}  // namespace lockstep::nn
