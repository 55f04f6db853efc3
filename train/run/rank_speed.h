#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/group/process_group.h"
#include "train/report/rank_times.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Compares the ranks' speeds: adds up what this rank's steps are spent on, and exchanges the means
/// with the other ranks while training goes on. Not thread-safe.
class RankSpeed {
 public:
  /// Without a group nothing is compared. It must outlive this object.
  explicit RankSpeed(dist::ProcessGroup* group) : group_(group) {}

  /// Adds a step of this rank.
  void add(const StepResult& step);
  /// Begins to exchange the means of the steps since the last exchange. Collective; waits for
  /// nothing.
  void exchange();
  /// Forgets the steps since the last exchange, and an exchange whose result was not taken: ranks
  /// have other work from now on. Collective.
  void restart();
  /// What was exchanged last of all ranks, once, when it is there. An error of the exchange is the
  /// next operation's to tell.
  std::optional<RankComparison> take();

 private:
  dist::ProcessGroup* group_;
  RankTimes sums_;
  int64_t steps_ = 0;
  std::optional<double> core_seconds_;  ///< of this thread at the last exchange
  Tensor of_all_;                       ///< f64 [ranks, kParts], under way
  int64_t steps_under_way_ = 0;
  dist::Work work_;
};

}  // namespace lockstep::train
