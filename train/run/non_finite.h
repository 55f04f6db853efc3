#pragma once

#include <cstdint>

namespace lockstep::train {

/// What to do after a step whose loss or gradient norm is not finite; see configs/train.proto.
enum class NonFinite : uint8_t { kStop, kSkip, kRollback };

/// Limits how many non-finite steps a run tolerates. A plain state machine, so that it can be
/// tested without training.
class NonFiniteGuard {
 public:
  /// Tolerates at most `limit` non-finite steps; the count restarts at a finite step later than the
  /// last non-finite one.
  [[nodiscard]] NonFiniteGuard(NonFinite policy, int64_t limit) : policy_(policy), limit_(limit) {}

  /// Call after every step. Returns kStop if the limit is exceeded, else the policy. The result for
  /// a finite step is meaningless.
  NonFinite after(int64_t step, bool finite);

 private:
  NonFinite policy_;
  int64_t limit_;
  int64_t furthest_ = -1;
  int64_t failures_ = 0;
};

}  // namespace lockstep::train
