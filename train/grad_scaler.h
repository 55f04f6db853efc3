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
///   scaler.unscale_(gradients);                       // optional: their norm, to clip by
///   scaler.step(optimizer, gradients, learning_rate);  // left out where a gradient is not finite
///   scaler.update();
///
/// None of the four waits for a device: scale, count and what was found stay in its memory, and the
/// step is left out there. Whoever asks for their values waits. All losses and gradients must be on
/// one device.
///
/// Names and defaults are PyTorch's. While the scale is a power of two, scaling changes no bit of
/// gradients that stay within the range. Not thread-safe.
class GradScaler {
 public:
  /// Throws ConfigError when an option is out of its range.
  explicit GradScaler(const GradScalerOptions& options = {});

  bool is_enabled() const { return enabled_; }
  /// What losses are multiplied by now; 1 when disabled. Waits.
  double get_scale() const { return enabled_ ? state().scale : 1; }
  /// The same as a tensor: f64, 0-d, on `device`, where losses are or will be. When enabled.
  const Tensor& scale_on(Device device);

  /// The loss times the scale, recorded.
  Tensor scale(const Tensor& loss);
  /// Divides gradients by the scale, in place, unless one of them is not finite: then they stay,
  /// and `found_inf` says so. Once between two updates; throws AutogradError on a second call.
  /// Returns their norm (train/grad_norm.h) after that; nothing when disabled.
  Tensor unscale_(std::span<const Tensor> gradients);
  /// Whether gradients seen since the last update were not finite. Waits.
  bool found_inf() const;
  /// One step of the optimizer, which the device leaves out where a gradient is not finite;
  /// unscales first where that has not been done. `grad_scale` as in Optimizer::step.
  void step(Optimizer& optimizer, const std::vector<Tensor>& gradients, double learning_rate,
            double grad_scale = 1);
  /// Ends the step: the scale backs off after one with non-finite gradients, grows after enough
  /// without, or becomes `new_scale`. Throws AutogradError when no gradients were unscaled since
  /// the last one.
  void update(std::optional<double> new_scale = std::nullopt);
  /// The same, unless the step is to be forgotten, which `forgets` says, a bool without dimensions
  /// on the device: then scale and count stay.
  void update_unless(const Tensor& forgets);

  /// Waits.
  GradScalerState state() const;
  /// Throws CheckpointError when a number is out of its range.
  void load_state(const GradScalerState& state);

 private:
  /// f64, 0-d.
  struct Numbers {
    Tensor scale;
    Tensor growth_tracker;
  };
  void set_numbers(const GradScalerState& state, Device device);
  /// What the step makes of them.
  Numbers followed() const;

  bool enabled_;
  GradScalerState options_;  ///< scale and count are in `numbers_`
  Numbers numbers_;
  Tensor found_inf_;  ///< f32, 0-d; undefined between an update and the next gradients
};

}  // namespace lockstep::train
