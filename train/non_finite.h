#pragma once

#include <cstdint>

namespace lockstep::train {

/// What to do when a step's loss or gradient norm is not finite; see configs/train.proto.
enum class NonFinite : uint8_t { kStop, kSkip, kRollback };

/// Decides how often a run may meet such steps. A plain state machine, so that it can be tested
/// without training.
class NonFiniteGuard {
 public:
  /// At most `limit` such steps are forgiven without a finite one beyond the furthest of them.
  NonFiniteGuard(NonFinite policy, int64_t limit) : policy_(policy), limit_(limit) {}

  /// After every step: kStop ends the run, the others are what the policy says. For a finite step
  /// the answer means nothing.
  NonFinite after(int64_t step, bool finite);

 private:
  NonFinite policy_;
  int64_t limit_;
  int64_t furthest_ = -1;
  int64_t failures_ = 0;
};

}  // namespace lockstep::train
