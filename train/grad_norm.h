#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"
#include "train/read_back.h"

namespace lockstep::train {

/// sqrt of the sum of squares over all gradients. Each contributes f64 sums of its 4096-element
/// blocks in a fixed order of lanes; all are added in (tensor, block) order. So the bits depend on
/// neither threads nor on how gradients are bucketed or sharded.
double grad_norm(std::span<const Tensor> gradients);

/// The same in two halves, for who reads more back with the same wait: queues the sums, and adds
/// them once `numbers` has been waited for.
class PendingGradNorm {
 public:
  PendingGradNorm(std::span<const Tensor> gradients, ReadBack& numbers);
  /// Of gradients whose `_block_square_sums` these are.
  static PendingGradNorm of_square_sums(std::vector<Tensor> sums, ReadBack& numbers);
  double value(const ReadBack& numbers) const;

 private:
  PendingGradNorm() = default;
  void add(std::vector<Tensor> sums, ReadBack& numbers);

  size_t first_ = 0;
  size_t count_ = 0;  ///< numbers in `ReadBack`
};

/// What gradients are multiplied by so that their norm is at most `limit` (0: never clipped);
/// `norm` is theirs.
double clip_factor(double norm, double limit);

}  // namespace lockstep::train
