#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "train/optimizer/optimizer.h"

namespace lockstep::train {

/// State of a GradScaler, saved in checkpoints.
struct GradScalerState {
  double scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  int64_t growth_tracker = 0;  ///< steps without overflow since the scale last changed
  friend bool operator==(const GradScalerState&, const GradScalerState&) = default;
};

struct GradScalerOptions {
  double init_scale = 65536;       ///< above 0
  double growth_factor = 2;        ///< multiplies the scale after growth_interval finite steps
  double backoff_factor = 0.5;     ///< multiplies the scale after a step with non-finite gradients
  int64_t growth_interval = 2000;  ///< steps, at least 1
  bool enabled = true;             ///< false: the scale is 1 and gradients are not checked
};

/// Dynamic loss scaling: keeps gradients in the range of f16 (Micikevicius et al. 2018). The loss
/// is multiplied by a scale before backward and gradients are divided by it before use; the scale
/// shrinks on overflow and grows after enough steps without.
///
///   scaler.scale(loss).backward();
///   scaler.unscale_(gradients);                       // optional: their norm, to clip by
///   scaler.step(optimizer, gradients, learning_rate);  // skipped if a gradient is not finite
///   scaler.update();
///
/// None of the four synchronizes with a device: scale, growth tracker and found_inf stay in its
/// memory, and the device itself skips the step. Only the functions that return their values wait.
/// All losses and gradients must be on one device.
///
/// Names and defaults are PyTorch's. While the scale is a power of two, scaling changes no bit of
/// gradients that stay within the range. Not thread-safe.
class GradScaler {
 public:
  /// Throws ConfigError if an option is out of its range.
  explicit GradScaler(const GradScalerOptions& options = {});

  bool is_enabled() const { return enabled_; }
  /// The current loss scale; 1 if disabled. Waits for the device.
  double get_scale() const { return enabled_ ? state().scale : 1; }
  /// The current loss scale as an f64 0-d tensor on `device`, the device of the losses, which
  /// updates change in place. Only if enabled.
  const Tensor& scale_on(Device device);

  /// Returns loss times scale, recorded for backward.
  Tensor scale(const Tensor& loss);
  /// Divides gradients by the scale, in place; if one of them is not finite, leaves them as they
  /// are and sets `found_inf`. Returns their norm after that (train/optimizer/grad_norm.h), or an
  /// undefined tensor if disabled. Throws AutogradError on a second call before `update`.
  Tensor unscale_(std::span<const Tensor> gradients);
  /// Unscales gradients of which other ranks have other parts: `norm` is that of all of them.
  Tensor unscale_(std::span<const Tensor> gradients, const Tensor& norm);
  /// Whether gradients unscaled since the last update were not finite. Waits for the device.
  bool found_inf() const;
  /// Runs one step of the optimizer, which the device skips if a gradient is not finite. Unscales
  /// first if that has not been done. `grad_scale` as in Optimizer::step.
  void step(Optimizer& optimizer, const std::vector<Tensor>& gradients, double learning_rate,
            double grad_scale = 1);
  /// Ends the step: the scale backs off after a step with non-finite gradients, grows after
  /// growth_interval steps without, or becomes `new_scale`. Throws AutogradError if no gradients
  /// were unscaled since the last update.
  void update(std::optional<double> new_scale = std::nullopt);
  /// As `update()`, but leaves scale and growth tracker as they are if `forgets` (a 0-d bool on the
  /// device) is true: the step does not count.
  void update_unless(const Tensor& forgets);

  /// Returns the state for a checkpoint. Waits for the device.
  GradScalerState state() const;
  /// Throws CheckpointError if a number is out of its range.
  void load_state(const GradScalerState& state);

 private:
  /// The changing part of the state: f64 0-d tensors.
  struct Numbers {
    Tensor scale;
    Tensor growth_tracker;
  };
  void set_numbers(const GradScalerState& state, Device device);
  void set_numbers(const Numbers& numbers);
  /// Returns the numbers after this step.
  Numbers followed() const;

  bool enabled_;
  GradScalerState options_;  ///< its scale and growth_tracker are unused: see `numbers_`
  Numbers numbers_;
  Tensor found_inf_;  ///< f32, 0-d; undefined between an update and the next gradients
};

}  // namespace lockstep::train
