#pragma once

#include <cstdint>
#include <string>

#include "train/step_outcome.h"

namespace lockstep::train {

/// What one step did.
struct StepResult {
  int64_t step = 0;      ///< counts from 0
  double loss = 0;       ///< mean over the step's targets, in nats
  double grad_norm = 0;  ///< before clipping; of the gradients without the loss scale
  double learning_rate = 0;
  int64_t tokens = 0;  ///< inputs of the step
  double seconds = 0;  ///< in `step`
  /// How long its batch was waited for: part of `seconds`, or of those of the step before, where
  /// this one was begun.
  double data_wait_ms = 0;
  /// Part of `seconds` in which the ranks' gradients were waited for after backward; negative where
  /// the rank is alone.
  double exposed_comm_ms = -1;
  /// Bytes that this rank sent to others in `seconds`; negative where the rank is alone, or the
  /// group cannot tell.
  int64_t sent_bytes = -1;
  double loss_scale = 1;  ///< what the losses were multiplied by before backward
  StepOutcome outcome;
  /// If the step is not finite, names the rank and the loss or parameter that caused it. The text
  /// is the same on all ranks (train/non_finite_search.h).
  std::string non_finite;
  /// If an audit found ranks that compute differently, what it found, the same text on all ranks.
  /// Then nothing was updated, and the next step is this one once more.
  std::string audit;
  /// Which number of a step that is a spike lies above which, and the samples with the largest
  /// losses; empty for other steps.
  std::string spike;
  bool stop = false;      ///< some rank was asked to stop
  bool replayed = false;  ///< its passes were a CUDA graph, whose communication has no times
};

}  // namespace lockstep::train
