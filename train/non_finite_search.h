#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/ddp/reducer.h"

namespace lockstep::train {

/// Finds the rank, micro-batch and parameter that made a step's loss or gradient norm non-finite.
/// After the sums over ranks and micro-batches every rank has the NaN; so each rank recomputes its
/// micro-batches, passes them here one by one before any sum, and the ranks combine their first
/// findings. Not thread-safe.
class NonFiniteSearch {
 public:
  /// `micro_batches`: their number in the step, over all ranks.
  NonFiniteSearch(std::vector<dist::NamedTensor> parameters, int64_t micro_batches);

  /// Checks the values of the parameters.
  void look_at_parameters();
  /// Checks one micro-batch (number from 0 over all ranks): its loss, and its own gradient for each
  /// parameter, undefined where there is none.
  void look_at(int64_t micro_batch, double loss, const std::vector<Tensor>& gradients);
  /// Ends the search on this rank with the reason why it cannot continue.
  void give_up(const std::string& why);
  /// Whether this rank has a finding and need not continue.
  bool found() const { return !what_.empty(); }

  /// Collective; returns the same text on all ranks: "gradient of h.1.mlp.fc.weight has 17 NaN on
  /// rank 1 (micro-batch 6 of 8)", joined if several ranks found something. If several gradients of
  /// a micro-batch are non-finite, names the last parameter, which backward reaches first. If no
  /// rank found anything, states whether only the sum can have overflowed or the recomputed step
  /// gave other numbers than the first run. `group` may be null.
  std::string conclusion(dist::ProcessGroup* group) const;

 private:
  std::vector<dist::NamedTensor> parameters_;
  int64_t micro_batches_;
  std::string what_;    ///< the finding; empty if there is none
  std::string where_;   ///< the part of the message after the rank
  double largest_ = 0;  ///< upper bound of the elements of this rank's summed gradients
};

/// Describes gradients already summed over ranks, for steps that cannot be computed again: names
/// the last parameter whose gradient is not finite. Empty if all are.
std::string non_finite_sums(const std::vector<dist::NamedTensor>& parameters,
                            const std::vector<Tensor>& gradients);

}  // namespace lockstep::train
