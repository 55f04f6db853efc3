#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/group/work.h"
#include "train/optimizer.h"

namespace lockstep::train {

/// The optimizer's step in parts, while backward still runs (optimizer.optimizer_in_backward):
/// parameters are updated as their gradients become complete (ReducerOptions::on_reduced). What
/// their update depends on besides is known before: the number of the step's targets is summed over
/// the ranks meanwhile, and there is no clipping. Not thread-safe.
class EarlyUpdate {
 public:
  /// `optimizer` must outlive this object.
  explicit EarlyUpdate(Optimizer& optimizer) : optimizer_(optimizer) {}

  /// Between the last forward pass of a step and its backward. `targets`: f64 [1] on the cpu, of
  /// the step over all ranks once `sum` is done.
  void begin(Tensor targets, dist::Work sum, double learning_rate);
  /// Updates these parameters, now or, where the number of targets is still under way, with a later
  /// call: backward does not wait for it. Gradients in the order of all parameters; those of these
  /// are complete, and are divided by the number of targets as they are read.
  void update(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients);
  /// After the step's last `update`: what is left of it.
  void finish(const std::vector<Tensor>& gradients);

  /// After `finish`: `_block_square_sums` of all gradients, which were in the processor's caches
  /// for the update anyway.
  Tensor square_sums() const;

 private:
  /// Of those that wait.
  void add_square_sums(const std::vector<Tensor>& gradients);

  Optimizer& optimizer_;
  double learning_rate_ = 0;
  Tensor targets_;
  dist::Work targets_sum_;
  std::vector<uint32_t> waiting_;    ///< parameters
  std::vector<Tensor> square_sums_;  ///< of each gradient
};

}  // namespace lockstep::train
