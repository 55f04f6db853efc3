#include "train/optimizer/grad_scaler.h"

#include <cmath>
#include <string>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "train/optimizer/grad_norm.h"
#include "train/optimizer/read_back.h"

namespace lockstep::train {

namespace {

/// Lower limit of the scale: the smallest normal f32.
constexpr double kSmallest = 0x1p-126;

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

/// Describes the first number that is out of its range; empty if none is.
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
      options_{options.init_scale, options.growth_factor, options.backoff_factor,
               options.growth_interval} {
  check_options(options_);
  set_numbers(options_, kCPU);
}

void GradScaler::set_numbers(const GradScalerState& state, Device device) {
  const TensorOptions there{DType::kF64, device};
  set_numbers({full({}, state.scale, there), full({}, state.growth_tracker, there)});
}

/// In place, where that can be: captured steps read the numbers where they are.
void GradScaler::set_numbers(const Numbers& numbers) {
  const bool are_there =
      numbers_.scale.defined() && numbers_.scale.device() == numbers.scale.device();
  if (!are_there) {
    numbers_ = numbers;
    return;
  }
  const NoGradGuard no_grad;
  numbers_.scale.copy_(numbers.scale);
  numbers_.growth_tracker.copy_(numbers.growth_tracker);
}

const Tensor& GradScaler::scale_on(Device device) {
  if (numbers_.scale.device() != device) set_numbers(state(), device);
  return numbers_.scale;
}

Tensor GradScaler::scale(const Tensor& loss) {
  return enabled_ ? mul(loss, scale_on(loss.device()).to(loss.dtype())) : loss;
}

Tensor GradScaler::unscale_(std::span<const Tensor> gradients) {
  return enabled_ ? unscale_(gradients, grad_norm(gradients)) : Tensor();
}

Tensor GradScaler::unscale_(std::span<const Tensor> gradients, const Tensor& norm) {
  if (!enabled_) return {};
  LS_CHECK(!found_inf_.defined(), AutogradError,
           "[grad_scaler] unscale_ was called already: expected once before update().");
  const NoGradGuard no_grad;
  // The norm is finite exactly if all elements are: squares of f32 cannot overflow f64.
  const Tensor is_finite = isfinite(norm);
  found_inf_ = logical_not(is_finite).to(DType::kF32);
  const Tensor& scale = scale_on(norm.device());
  const Tensor factor = where(is_finite, reciprocal(scale), ones_like(scale));
  if (!gradients.empty()) {
    const Tensor narrow = to(factor, gradients[0].dtype(), gradients[0].device());
    for (const Tensor& gradient : gradients) mul_(gradient, narrow);
  }
  return norm * factor;
}

bool GradScaler::found_inf() const { return found_inf_.defined() && read_number(found_inf_) != 0; }

void GradScaler::step(Optimizer& optimizer, const std::vector<Tensor>& gradients,
                      double learning_rate, double grad_scale) {
  if (!found_inf_.defined()) (void)unscale_(gradients);
  optimizer.step(gradients, learning_rate, grad_scale,
                 {.grad_factor = {}, .found_inf = found_inf_});
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!enabled_) return;
  if (new_scale) {
    GradScalerState state = options_;
    state.scale = *new_scale;
    check_options(state);
    numbers_.scale.fill_(state.scale);
  } else {
    set_numbers(followed());
  }
  found_inf_ = {};
}

void GradScaler::update_unless(const Tensor& forgets) {
  if (!enabled_) return;
  const NoGradGuard no_grad;
  const Numbers next = followed();
  set_numbers({where(forgets, numbers_.scale, next.scale),
               where(forgets, numbers_.growth_tracker, next.growth_tracker)});
  found_inf_ = {};
}

GradScaler::Numbers GradScaler::followed() const {
  LS_CHECK(found_inf_.defined(), AutogradError,
           "[grad_scaler] update() without gradients: expected unscale_ or step before it.");
  const NoGradGuard no_grad;
  const auto& [scale, growth_tracker] = numbers_;
  const Tensor overflows = gt(found_inf_, 0);
  const Tensor count = growth_tracker + 1;
  const Tensor is_due = eq(count, options_.growth_interval);
  // A scale beyond the range of f32 would make every later scaled loss infinite.
  Tensor grown = scale * options_.growth_factor;
  grown = where(isfinite(grown.to(DType::kF32)), grown, scale);
  const Tensor smaller = maximum(scale * options_.backoff_factor, full_like(scale, kSmallest));
  return {where(overflows, smaller, where(is_due, grown, scale)),
          where(logical_or(overflows, is_due), zeros_like(count), count)};
}

GradScalerState GradScaler::state() const {
  GradScalerState state = options_;
  state.scale = read_number(numbers_.scale);
  state.growth_tracker = static_cast<int64_t>(read_number(numbers_.growth_tracker));
  return state;
}

void GradScaler::load_state(const GradScalerState& state) {
  const std::string problem = problem_of(state);
  LS_CHECK(problem.empty(), CheckpointError, "[grad_scaler] {}", problem);
  options_ = state;
  set_numbers(state, numbers_.scale.device());
  found_inf_ = {};
}

}  // namespace lockstep::train
