#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "optim/optimizer.h"

namespace lockstep::optim {

/// Names, defaults and bounds are PyTorch's.
struct GradScalerOptions {
  double init_scale = 65536;       ///< above 0
  double growth_factor = 2;        ///< above 1: multiplies the scale after growth_interval steps
  double backoff_factor = 0.5;     ///< below 1: multiplies the scale after an overflow
  int64_t growth_interval = 2000;  ///< steps without overflow, at least 1
  bool enabled = true;             ///< false: the scale is 1 and gradients are not looked at
};

/// Dynamic loss scaling, which keeps gradients in the range of f16 (Micikevicius et al. 2018), for
/// loops of one's own. (train::GradScaler is the trainer's, which never waits for a device.)
///
///   optimizer.zero_grad();
///   scaler.scale(loss).backward();
///   scaler.unscale_(optimizer);                             // only to clip what comes of it:
///   clip_grad_norm_(model.parameters(), 1.0);
///   scaler.step(optimizer);                                 // not if a gradient is not finite
///   scaler.update();
///
/// One scaler serves several optimizers: each is unscaled and stepped once before `update`, and one
/// overflow makes the scale back off. `step` waits for the device. Not thread-safe.
class GradScaler {
 public:
  /// Throws ConfigError if an option is out of its range.
  explicit GradScaler(const GradScalerOptions& options = {});

  bool is_enabled() const { return options_.enabled; }
  /// The current loss scale; 1 if disabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }

  /// Returns loss times scale, recorded for backward.
  Tensor scale(const Tensor& loss) const;
  /// Divides the gradients of the optimizer's parameters by the scale, in place, and notes whether
  /// all of them are finite. Throws AutogradError on a second call before `update`, and after
  /// `step`.
  void unscale_(const Optimizer& optimizer);
  /// Steps the optimizer if its gradients are finite, and returns whether it did. Unscales first if
  /// that has not been done. Throws AutogradError on a second call before `update`, and for an
  /// optimizer without gradients.
  bool step(Optimizer& optimizer);
  /// Ends the step: the scale backs off after non-finite gradients, grows after growth_interval
  /// steps without, or becomes `new_scale`. Throws AutogradError if nothing was unscaled since the
  /// last update.
  void update(std::optional<double> new_scale = std::nullopt);

  /// "scale", "growth_factor", "backoff_factor", "growth_interval" and "growth_tracker"; empty if
  /// disabled.
  StateDict state_dict() const;
  /// Throws CheckpointError if a number is missing or out of its range, and changes nothing then.
  void load_state_dict(const StateDict& state);

 private:
  /// What has been done with an optimizer since the last update.
  struct Progress {
    Tensor found_inf;  ///< 0-d bool, on the device of the gradients
    bool stepped = false;
  };

  GradScalerOptions options_;
  double scale_;
  int64_t growth_tracker_ = 0;  ///< steps without overflow since the scale last changed
  std::map<const Optimizer*, Progress> progress_;
};

}  // namespace lockstep::optim
