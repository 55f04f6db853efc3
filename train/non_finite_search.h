#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/ddp/reducer.h"

namespace lockstep::train {

/// Finds out whose numbers made a step's loss or gradient norm not finite. After the sums over
/// ranks and micro-batches all ranks have the NaN; so each computes its micro-batches again, shows
/// them here one by one, without any sum, and the ranks put together what each has found first.
/// Not thread-safe.
class NonFiniteSearch {
 public:
  /// `micro_batches` of the step, over all ranks.
  NonFiniteSearch(std::vector<dist::NamedTensor> parameters, int64_t micro_batches);

  /// The values of the parameters themselves.
  void look_at_parameters();
  /// A micro-batch, counted from 0 over all ranks: its loss, and the gradients of it alone by
  /// parameter; undefined for those that have none.
  void look_at(int64_t micro_batch, double loss, const std::vector<Tensor>& gradients);
  /// The rest cannot be looked at.
  void give_up(const std::string& why);
  /// Whether this rank need not go on.
  bool found() const { return !what_.empty(); }

  /// On all ranks together, the same on each: "gradient of h.1.mlp.fc.weight has 17 NaN on rank 1
  /// (micro-batch 6 of 8)", joined where several ranks found something. Of several gradients of a
  /// micro-batch it is the last parameter's, which backward comes to first. Where no rank found
  /// anything: whether only the sum can have overflowed, or the step gives other numbers than the
  /// first time. `group` may be null.
  std::string conclusion(dist::ProcessGroup* group) const;

 private:
  std::vector<dist::NamedTensor> parameters_;
  int64_t micro_batches_;
  std::string what_;    ///< what was found; empty while nothing was
  std::string where_;   ///< what is said after the rank
  double largest_ = 0;  ///< no element of the sum of this rank's gradients is larger
};

/// What there is to say of sums over ranks, where the step cannot be computed again: the last
/// parameter whose gradient is not finite; the losses where all are.
std::string non_finite_sums(const std::vector<dist::NamedTensor>& parameters,
                            const std::vector<Tensor>& gradients);

}  // namespace lockstep::train
