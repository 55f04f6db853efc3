#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/launch/child_process.h"
#include "launcher/launch/launch_failure.h"
#include "launcher/launch/launch_output.h"
#include "launcher/launch/launch_plan.h"
#include "launcher/launch/launch_warden.h"
#include "launcher/launch/output_splitter.h"
#include "launcher/launch/signal_queue.h"

namespace lockstep::launcher {

/// How one start of a job ended.
struct AttemptEnd {
  int status = 0;                ///< for the program's exit status
  bool failed = false;           ///< and starting again may help
  LaunchFailure failure;         ///< where there is one
  std::vector<std::string> log;  ///< the last lines of the rank that failed
  std::string message;           ///< for a person; empty when all went well
};

/// One start of a job: the launcher runs as a child, its output is passed on, signals become
/// requests to save and stop, and nothing of it is left when `run` returns or throws, or soon after
/// this process was killed.
class LaunchAttempt {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts it. `deadline` is that of --timeout. Throws ConfigError when the launcher cannot be
  /// started, DataError when files for output cannot be made.
  LaunchAttempt(const LaunchPlan& plan, SignalQueue& signals,
                std::optional<Clock::time_point> deadline, bool append_output);
  ~LaunchAttempt();
  LaunchAttempt(const LaunchAttempt&) = delete;
  LaunchAttempt& operator=(const LaunchAttempt&) = delete;

  /// Returns when the job has ended. Throws DataError when output cannot be written.
  AttemptEnd run();

 private:
  void wait_for_something();
  void read_output();
  void take_signal(int signal);
  void act_on_deadlines();
  bool ranks_are_there() const;
  /// Passes the request on, once there are ranks to take it.
  void try_request();
  void terminate();
  void kill();
  void drain();
  AttemptEnd conclude(int wait_status);

  const LaunchPlan& plan_;
  SignalQueue& signals_;
  OrphanKeeper orphans_;
  LaunchOutput output_;
  OutputSplitter out_;
  OutputSplitter err_;
  std::optional<ChildProcess> child_;
  std::optional<LaunchWarden> warden_;
  pid_t launcher_ = -1;

  int asked_by_ = 0;  ///< the signal that asked for a stop
  bool request_pending_ = false;
  bool terminating_ = false;
  bool killed_ = false;
  bool timed_out_ = false;
  std::optional<Clock::time_point> deadline_;  ///< of --timeout
  std::optional<Clock::time_point> request_deadline_;
  std::optional<Clock::time_point> grace_deadline_;
  std::optional<Clock::time_point> failure_deadline_;
  std::optional<Clock::time_point> kill_deadline_;
};

}  // namespace lockstep::launcher
