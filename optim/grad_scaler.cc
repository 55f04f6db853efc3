#include "optim/grad_scaler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/reduce/reduce.h"
#include "optim/state_reader.h"

namespace lockstep::optim {

namespace {

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

/// Describes the first number that is out of its range; empty if none is.
std::string problem_of(const GradScalerOptions& options, double scale) {
  if (!is_positive(scale)) {
    return fmt::format("scale is {}: expected a finite number above 0.", scale);
  }
  if (!is_positive(options.growth_factor) || options.growth_factor <= 1) {
    return fmt::format("growth_factor is {}: expected a finite number above 1.",
                       options.growth_factor);
  }
  if (!is_positive(options.backoff_factor) || options.backoff_factor >= 1) {
    return fmt::format("backoff_factor is {}: expected a number between 0 and 1.",
                       options.backoff_factor);
  }
  if (options.growth_interval < 1) {
    return fmt::format("growth_interval is {}: expected at least 1 step.", options.growth_interval);
  }
  return "";
}

void check(const GradScalerOptions& options, double scale) {
  const std::string problem = problem_of(options, scale);
  LS_CHECK(problem.empty(), ConfigError, "[optim.GradScaler] {}", problem);
}

std::vector<Tensor> gradients_of(const Optimizer& optimizer) {
  std::vector<Tensor> gradients;
  for (size_t group = 0; group < optimizer.group_count(); ++group) {
    for (const Tensor& parameter : optimizer.parameters(group)) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  return gradients;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), scale_(options.init_scale) {
  check(options_, scale_);
}

Tensor GradScaler::scale(const Tensor& loss) const {
  return options_.enabled ? mul(loss, scale_) : loss;
}

void GradScaler::unscale_(const Optimizer& optimizer) {
  if (!options_.enabled) return;
  const auto found = progress_.find(&optimizer);
  LS_CHECK(found == progress_.end(), AutogradError,
           "[optim.GradScaler] unscale_ came after {} of the same optimizer: expected it once "
           "before update().",
           found->second.stepped ? "step" : "unscale_");
  const NoGradGuard no_grad;
  const std::vector<Tensor> gradients = gradients_of(optimizer);
  LS_CHECK(!gradients.empty(), AutogradError,
           "[optim.GradScaler] no parameter of the optimizer has a gradient: expected backward() "
           "of a scaled loss before.");
  Tensor all_finite;
  for (const Tensor& gradient : gradients) {
    const Tensor finite = all(isfinite(gradient));
    all_finite =
        all_finite.defined() ? logical_and(all_finite, finite.to(all_finite.device())) : finite;
    mul_(gradient, 1 / scale_);
  }
  progress_.emplace(&optimizer, Progress{logical_not(all_finite)});
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  if (!progress_.contains(&optimizer)) unscale_(optimizer);
  Progress& progress = progress_.at(&optimizer);
  LS_CHECK(!progress.stepped, AutogradError,
           "[optim.GradScaler] step was called already with this optimizer: expected it once "
           "before update().");
  progress.stepped = true;
  if (progress.found_inf.item<bool>()) return false;
  optimizer.step();
  return true;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  if (new_scale) {
    check(options_, *new_scale);
    scale_ = *new_scale;
    progress_.clear();
    return;
  }
  LS_CHECK(!progress_.empty(), AutogradError,
           "[optim.GradScaler] update() without gradients: expected unscale_ or step before it.");
  const bool overflows = std::ranges::any_of(
      progress_, [](const auto& entry) { return entry.second.found_inf.template item<bool>(); });
  progress_.clear();
  if (overflows) {
    scale_ *= options_.backoff_factor;
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    // A scale beyond the range of f32 would make every later scaled loss infinite.
    const double grown = scale_ * options_.growth_factor;
    if (std::isfinite(static_cast<float>(grown))) scale_ = grown;
    growth_tracker_ = 0;
  }
}

StateDict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  return {.numbers = {{"scale", scale_},
                      {"growth_factor", options_.growth_factor},
                      {"backoff_factor", options_.backoff_factor},
                      {"growth_interval", static_cast<double>(options_.growth_interval)},
                      {"growth_tracker", static_cast<double>(growth_tracker_)}}};
}

void GradScaler::load_state_dict(const StateDict& state) {
  if (!options_.enabled) return;
  StateReader reader("GradScaler", state);
  GradScalerOptions options = options_;
  const double scale = reader.number("scale");
  options.growth_factor = reader.number("growth_factor");
  options.backoff_factor = reader.number("backoff_factor");
  options.growth_interval = static_cast<int64_t>(reader.number("growth_interval"));
  const double tracker = reader.number("growth_tracker");
  reader.expect_end();
  const std::string problem = problem_of(options, scale);
  LS_CHECK(problem.empty(), CheckpointError, "[optim.GradScaler] {}", problem);
  LS_CHECK(tracker >= 0 && tracker < static_cast<double>(options.growth_interval), CheckpointError,
           "[optim.GradScaler] growth_tracker is {}: expected a number of steps below {}.", tracker,
           options.growth_interval);
  options_ = options;
  scale_ = scale;
  growth_tracker_ = static_cast<int64_t>(tracker);
}

}  // namespace lockstep::optim
