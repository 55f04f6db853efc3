#pragma once

#include <vector>

#include "core/tensor/tensor.h"
#include "dist/collectives/leaf_deal.h"
#include "dist/ddp/step_times.h"

namespace lockstep::dist {

/// What sums the gradients of a step over its backwards and over the ranks, seen from the loop that
/// runs the steps: Reducer, where every rank has a copy of the model, and ShardedModel. Reducer
/// (dist/ddp/reducer.h) shows a step. All ranks make the same calls.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  /// Marks all gradients as absent.
  virtual void begin_step() = 0;
  /// Forgets the step that was begun, of which nothing has gone to other ranks: its operations were
  /// to be part of a CUDA graph, which could not be captured. Only for what steps capture.
  virtual void forget_step() {}
  /// Begins the next leaf of the step.
  virtual void begin_leaf() = 0;
  /// Announces that the next backward is the last of the step; false cancels that.
  virtual void expect_last_backward(bool expected = true) = 0;
  /// From the next step on this rank adds up its leaves of `deal`, the same on all ranks and of as
  /// many leaves as before. Between steps, with a tree of leaves. Changes no bit. Throws DistError
  /// for a deal of other leaves or ranks.
  virtual void deal_out(const LeafDeal& deal) = 0;
  /// Waits for all sums (on a device with streams, later work on the current stream waits).
  virtual void finish() = 0;

  /// After `finish`: the sums that this rank updates parameters by, in the order of the parameters
  /// that its optimizer was given.
  virtual const std::vector<Tensor>& gradients() const = 0;
  /// From one number of each 4,096-element block of `gradients()`, in their order, those of all
  /// gradients of the model, in the order of its parameters; f64, on the gradients' device. The
  /// result is the same on all ranks.
  virtual Tensor blocks_of_all(const Tensor& own) const = 0;

  /// Times of the last step; valid from `finish` to the beginning of the next step.
  virtual const StepTimes& times() const = 0;
  /// Moves the times of the last step out, to be read later.
  virtual StepTimes take_times() = 0;
};

}  // namespace lockstep::dist
