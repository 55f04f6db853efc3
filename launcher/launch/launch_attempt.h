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
#include "launcher/launch/session_folder.h"
#include "launcher/launch/signal_queue.h"

namespace lockstep::launcher {

/// How one start of a job ended.
struct AttemptEnd {
  int status = 0;                ///< exit status for the program
  bool failed = false;           ///< it failed in a way that a restart may help
  LaunchFailure failure;         ///< the first failure, if there was one
  std::vector<std::string> log;  ///< last output lines of the rank that failed
  std::string message;           ///< for the user; empty on success
  int lost_log = 0;              ///< errno of the first line that could not be shown
};

/// One start of a job. Runs the launcher as a child process, forwards its output, and turns signals
/// into requests to save and stop. No process of the job is left when `run` returns or throws, or
/// soon after this process was killed.
class LaunchAttempt {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts the job. `deadline` is that of --timeout. Throws ConfigError if the launcher cannot be
  /// started, DataError if output files cannot be created.
  LaunchAttempt(const LaunchPlan& plan, SignalQueue& signals,
                std::optional<Clock::time_point> deadline, bool append_output);
  ~LaunchAttempt();
  LaunchAttempt(const LaunchAttempt&) = delete;
  LaunchAttempt& operator=(const LaunchAttempt&) = delete;

  /// Waits until the job has ended. Throws DataError if output cannot be written.
  AttemptEnd run();

 private:
  void wait_for_something();
  void read_output();
  /// Sets the limit for the launcher's own end once all ranks have ended.
  void watch_end();
  void take_signal(int signal);
  void act_on_deadlines();
  bool ranks_are_there() const;
  /// Forwards the request to stop if the ranks are running; otherwise it stays pending.
  void try_request();
  void terminate();
  void kill();
  void drain();
  AttemptEnd conclude(int wait_status);
  int status_of(int wait_status) const;

  const LaunchPlan& plan_;
  SignalQueue& signals_;
  OrphanKeeper orphans_;
  LaunchOutput output_;
  OutputSplitter out_;
  OutputSplitter err_;
  std::optional<SessionFolder> session_;  ///< of mpirun; outlives it
  std::optional<ChildProcess> child_;
  std::optional<LaunchWarden> warden_;
  pid_t launcher_ = -1;

  int asked_by_ = 0;  ///< the signal that requested a stop
  bool request_pending_ = false;
  bool request_unsent_ = false;  ///< no rank came in time to be asked
  bool terminating_ = false;
  bool killed_ = false;
  bool forced_ = false;  ///< ranks that were asked to stop were ended before they had
  bool timed_out_ = false;
  bool start_failed_ = false;
  bool hangs_ = false;  ///< the launcher did not end after its ranks had ended well
  std::optional<Clock::time_point> deadline_;        ///< deadline of --timeout
  std::optional<Clock::time_point> start_deadline_;  ///< when all ranks must run
  std::optional<Clock::time_point> request_deadline_;
  std::optional<Clock::time_point> grace_deadline_;
  std::optional<Clock::time_point> failure_deadline_;
  std::optional<Clock::time_point> end_deadline_;  ///< when the launcher must end, as all ranks did
  std::optional<Clock::time_point> kill_deadline_;
};

}  // namespace lockstep::launcher
