#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/group/work.h"
#include "train/optimizer/optimizer.h"

namespace lockstep::train {

/// Runs the optimizer's step in parts while backward still runs (optimizer.optimizer_in_backward):
/// each parameter is updated as soon as its gradient is complete (ReducerOptions::on_reduced). This
/// works because the update needs nothing else of backward: the number of targets is summed over
/// the ranks at the same time, and gradients are not clipped. Not thread-safe.
class EarlyUpdate {
 public:
  /// `optimizer` must outlive this object.
  explicit EarlyUpdate(Optimizer& optimizer) : optimizer_(optimizer) {}

  /// Begins a step; call between its last forward pass and the backward of that. `targets`: f64 [1]
  /// on the cpu, the number of targets of the step over all ranks once `sum` has completed.
  void begin(Tensor targets, dist::Work sum, double learning_rate);
  /// Updates `parameters` (indices), or queues them for a later call if the sum of targets has not
  /// arrived: backward does not wait for it. `gradients` has one entry per parameter of the model;
  /// those of `parameters` must be complete, and are divided by the number of targets as they are
  /// read.
  void update(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients);
  /// Updates the parameters still queued; call after the step's last `update`.
  void finish(const std::vector<Tensor>& gradients);

  /// Returns `_block_square_sums` of all gradients; call after `finish`. They are computed with the
  /// update because the gradients are in the processor's caches then.
  Tensor square_sums() const;

 private:
  /// Computes the square sums of the queued parameters' gradients.
  void add_square_sums(const std::vector<Tensor>& gradients);

  Optimizer& optimizer_;
  double learning_rate_ = 0;
  Tensor targets_;
  dist::Work targets_sum_;
  std::vector<uint32_t> waiting_;    ///< indices of parameters to update
  std::vector<Tensor> square_sums_;  ///< `_block_square_sums` of each gradient
};

}  // namespace lockstep::train
