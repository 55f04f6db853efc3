#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/launch/launch_failure.h"
#include "launcher/launch/launch_options.h"

namespace lockstep::launcher {

/// Decides after each failure of a job whether, when and on what it is started again. A plain
/// object: it starts nothing.
class RestartPolicy {
 public:
  /// Longest wait before a restart, in seconds.
  static constexpr double kLongestDelay = 60;
  /// Failures in a row, without progress in between, after which a rank or a host is left out.
  static constexpr int kFailuresToLeaveOut = 2;

  struct Options {
    int max_restarts = 0;  ///< without progress in between
    double delay_seconds = 1;
    int min_ranks = 0;  ///< 0: as many as at first, so that nothing is left out
    /// Whether so many ranks can do the job; null: any number can.
    std::function<bool(int ranks)> can_do;
  };
  /// The job begins with `ranks` ranks on `hosts`; none: this host.
  RestartPolicy(Options options, int ranks, std::vector<LaunchHost> hosts);

  struct Decision {
    bool again = false;
    double delay_seconds = 0;
    int number = 0;                     ///< of the restarts that are allowed without progress
    int ranks = 0;                      ///< of the next start
    std::vector<std::string> left_out;  ///< hosts that it does not use
    bool keep_slow = false;             ///< training is to leave out no rank as too slow
    std::string note;                   ///< why there are fewer, or why none were left out; or ""
  };
  /// `progress`: a checkpoint was written since the failure before, or the start, other than by the
  /// failure itself. The wait doubles with each failure without progress, up to kLongestDelay;
  /// progress makes the budget and the wait what they were at first. Ranks that were left out do
  /// not come back.
  Decision after(const LaunchFailure& failure, bool progress);

 private:
  /// Leaves out the host or the rank that failed, if it is time to. Returns the note.
  std::string leave_out(const LaunchFailure& failure);
  int slots_without(const std::string& host) const;

  Options options_;
  int ranks_;
  std::vector<LaunchHost> hosts_;
  std::vector<std::string> left_out_;
  bool keep_slow_ = false;
  int used_ = 0;         ///< restarts since the last progress
  std::string suspect_;  ///< what failed last: "rank 3" or "host lsh0"
  int times_suspected_ = 0;
};

}  // namespace lockstep::launcher
