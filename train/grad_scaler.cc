#include "train/grad_scaler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "autograd/grad_mode.h"
#include "core/check.h"
#include "core/ops/pointwise.h"
#include "train/grad_norm.h"

namespace lockstep::train {

namespace {

/// The scale goes no lower: the smallest normal f32.
constexpr double kSmallest = 0x1p-126;

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

/// The first number that is out of its range, in words; empty when all are in it.
std::string problem_of(const GradScalerState& state) {
  if (!is_positive(state.scale)) {
    return fmt::format("scale is {}: expected a finite number above 0.", state.scale);
  }
  if (!is_positive(state.growth_factor) || state.growth_factor <= 1) {
    return fmt::format("growth_factor is {}: expected a finite number above 1.",
                       state.growth_factor);
  }
  if (!is_positive(state.backoff_factor) || state.backoff_factor >= 1) {
    return fmt::format("backoff_factor is {}: expected a number between 0 and 1.",
                       state.backoff_factor);
  }
  if (state.growth_interval < 1) {
    return fmt::format("growth_interval is {}: expected at least 1 step.", state.growth_interval);
  }
  if (state.growth_tracker < 0) {
    return fmt::format("growth_tracker is {}: expected a number of steps.", state.growth_tracker);
  }
  return "";
}

void check_options(const GradScalerState& state) {
  const std::string problem = problem_of(state);
  LS_CHECK(problem.empty(), ConfigError, "[grad_scaler] {}", problem);
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : enabled_(options.enabled),
      state_{options.init_scale, options.growth_factor, options.backoff_factor,
             options.growth_interval} {
  check_options(state_);
}

Tensor GradScaler::scale(const Tensor& loss) const {
  return enabled_ ? mul(loss, state_.scale) : loss;
}

void GradScaler::unscale_(std::span<const Tensor> gradients) {
  if (!enabled_) return;
  LS_CHECK(!unscaled_, AutogradError,
           "[grad_scaler] unscale_ was called already: expected once before update().");
  const NoGradGuard no_grad;
  unscaled_ = true;
  // A sum of squares in f64: f32 elements cannot make it overflow.
  found_inf_ = !std::isfinite(grad_norm(gradients));
  if (found_inf_ || state_.scale == 1) return;
  for (const Tensor& gradient : gradients) mul_(gradient, 1 / state_.scale);
}

bool GradScaler::step(Optimizer& optimizer, const std::vector<Tensor>& gradients,
                      double learning_rate, double grad_scale) {
  if (!unscaled_) unscale_(gradients);
  if (found_inf_) return false;
  optimizer.step(gradients, learning_rate, grad_scale);
  return true;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!enabled_) return;
  if (new_scale) {
    GradScalerState state = state_;
    state.scale = *new_scale;
    check_options(state);
    state_ = state;
  } else {
    LS_CHECK(unscaled_, AutogradError,
             "[grad_scaler] update() without gradients: expected unscale_ or step before it.");
    if (found_inf_) {
      state_.scale = std::max(state_.scale * state_.backoff_factor, kSmallest);
      state_.growth_tracker = 0;
    } else if (++state_.growth_tracker == state_.growth_interval) {
      // A scale beyond the range of f32 would make the scaled loss infinite for good.
      const double grown = state_.scale * state_.growth_factor;
      if (std::isfinite(static_cast<float>(grown))) state_.scale = grown;
      state_.growth_tracker = 0;
    }
  }
  abandon();
}

void GradScaler::abandon() { unscaled_ = found_inf_ = false; }

void GradScaler::load_state(const GradScalerState& state) {
  const std::string problem = problem_of(state);
  LS_CHECK(problem.empty(), CheckpointError, "[grad_scaler] {}", problem);
  state_ = state;
  abandon();
}

}  // namespace lockstep::train
