#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/launch/launch_failure.h"
#include "launcher/launch/restart_policy.h"

namespace lockstep::launcher {

/// Decides when ranks that are lost while the others go on are started again, to join them. A plain
/// object: it starts nothing.
class Comebacks {
 public:
  using Clock = std::chrono::steady_clock;

  /// Each rank is started again at most `max_restarts` times without a checkpoint in between, after
  /// a wait that doubles each time.
  Comebacks(int max_restarts, double delay_seconds)
      : options_{.max_restarts = max_restarts, .delay_seconds = delay_seconds, .can_do = {}} {}

  /// After the loss of a rank; `saved`: the step of the newest checkpoint. Returns a line for the
  /// user, empty where no rank is ever started again.
  std::string after(const LaunchFailure& failure, int64_t saved, Clock::time_point now);
  /// When the next rank is due.
  std::optional<Clock::time_point> next() const;
  /// The ranks that are to be started now, each once.
  std::vector<int> take_due(Clock::time_point now);

 private:
  struct Rank {
    RestartPolicy policy;
    int64_t saved = 0;  ///< the newest checkpoint when it was lost last
    std::optional<Clock::time_point> due = {};
  };

  RestartPolicy::Options options_;
  std::map<int, Rank> ranks_;
};

}  // namespace lockstep::launcher
