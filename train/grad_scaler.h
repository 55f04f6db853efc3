#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "train/optimizer.h"

namespace lockstep::train {

/// What a GradScaler goes on from; kept in checkpoints.
struct GradScalerState {
  double scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  int64_t growth_tracker = 0;  ///< steps without overflow since the scale last changed
  friend bool operator==(const GradScalerState&, const GradScalerState&) = default;
};

struct GradScalerOptions {
  double init_scale = 65536;  ///< above 0
  double growth_factor = 2;   ///< what the scale is multiplied by after growth_interval good steps
  double backoff_factor = 0.5;     ///< and by after a step whose gradients are not finite
  int64_t growth_interval = 2000;  ///< steps, at least 1
  bool enabled = true;             ///< false: the scale is 1 and nothing is looked at
};

/// Keeps gradients in the range of f16 (Micikevicius et al. 2018): the loss is multiplied by a
/// scale before backward, gradients are divided by it before they are used, and the scale follows
/// what overflows.
///
///   scaler.scale(loss).backward();
///   scaler.unscale_(gradients);                       // optional: to clip or look at them
///   scaler.step(optimizer, gradients, learning_rate);  // left out where a gradient is not finite
///   scaler.update();
///
/// Names and defaults are PyTorch's. While the scale is a power of two, scaling changes no bit of
/// gradients that stay within the range. Not thread-safe.
class GradScaler {
 public:
  /// Throws ConfigError when an option is out of its range.
  explicit GradScaler(const GradScalerOptions& options = {});

  bool is_enabled() const { return enabled_; }
  /// What losses are multiplied by now; 1 when disabled.
  double get_scale() const { return enabled_ ? state_.scale : 1; }

  /// The loss times the scale, recorded.
  Tensor scale(const Tensor& loss) const;
  /// Divides gradients by the scale, in place, unless one of them is not finite: then they stay,
  /// and `found_inf` says so. Once between two updates; throws AutogradError on a second call.
  void unscale_(std::span<const Tensor> gradients);
  /// Whether gradients seen since the last update were not finite.
  bool found_inf() const { return found_inf_; }
  /// One step of the optimizer, unless a gradient is not finite; unscales first where that has not
  /// been done. `grad_scale` as in Optimizer::step. Returns whether the optimizer stepped.
  bool step(Optimizer& optimizer, const std::vector<Tensor>& gradients, double learning_rate,
            double grad_scale = 1);
  /// Ends the step: the scale backs off after one with non-finite gradients, grows after enough
  /// without, or becomes `new_scale`. Throws AutogradError when no gradients were unscaled since
  /// the last one.
  void update(std::optional<double> new_scale = std::nullopt);
  /// Ends a step that is to be forgotten: scale and count stay.
  void abandon();

  const GradScalerState& state() const { return state_; }
  /// Throws CheckpointError when a number is out of its range.
  void load_state(const GradScalerState& state);

 private:
  bool enabled_;
  GradScalerState state_;
  bool unscaled_ = false;
  bool found_inf_ = false;
};

}  // namespace lockstep::train
