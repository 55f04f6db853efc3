#pragma once

namespace lockstep::train {

/// The numbers of a step that decide whether it updates.
struct StepNumbers {
  double loss = 0;
  double grad_norm = 0;   ///< without the loss scale
  double loss_scale = 1;  ///< what the losses were multiplied by before backward
};

/// What can be done about a step whose numbers are not finite.
struct OutcomeRule {
  /// The lowest loss scale that a scaler backs off from; negative where there is no scaler.
  double smallest_loss_scale = -1;
  /// Parameters are updated while backward runs, before the numbers are known.
  bool updates_early = false;

  /// Whether an overflow may be the fault of this loss scale.
  bool can_back_off(double loss_scale) const {
    return smallest_loss_scale >= 0 && loss_scale > smallest_loss_scale;
  }
};

/// What became of a step. A plain value.
struct StepOutcome {
  /// false: loss or gradient norm is not finite, and the update was left out.
  bool finite = true;
  /// Gradients overflowed under the loss scale, which backed off; the update was left out, and the
  /// norm is not finite. This is part of f16 training, so `finite` stays true.
  bool overflowed = false;
  /// The step is not finite, but weights were updated all the same; training cannot go on from
  /// them.
  bool spoiled = false;
  /// Loss or gradient norm is finite, and a spike (train/loss_spike.h).
  bool spike = false;
  /// The spike was left out: nothing was updated.
  bool left_out = false;

  /// Whether weights and optimizer moved on as they should.
  bool updated() const { return finite && !overflowed && !left_out; }
  friend bool operator==(const StepOutcome&, const StepOutcome&) = default;
};

StepOutcome outcome_of(const StepNumbers& numbers, const OutcomeRule& rule);

}  // namespace lockstep::train
