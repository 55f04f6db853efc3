#pragma once

#include <cstdint>
#include <optional>

#include "core/dispatch/mode.h"

namespace lockstep::train {

/// A part of a step, whose operators run one after the other on one rank.
struct StepPart {
  int64_t step = 0;  ///< from 0
  /// From 0, over all ranks: forward and backward of one. Nothing: what follows them, which every
  /// rank does: sums over micro-batches, the gradients' norm, the update.
  std::optional<int64_t> micro_batch = 0;
  friend bool operator==(const StepPart&, const StepPart&) = default;
};

/// Sees every operator of a trainer's steps below autograd, and which part of a step it belongs to
/// (Trainer::set_watch). May change results. Called by one thread at a time.
class StepWatch : public DispatchMode {
 public:
  /// The operators that follow belong to `part`.
  virtual void begin(const StepPart& part) = 0;
  /// The rank has done all parts of the step.
  virtual void end_step() {}
};

}  // namespace lockstep::train
