#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/launch/child_process.h"
#include "launcher/launch/comebacks.h"
#include "launcher/launch/launch_failure.h"
#include "launcher/launch/launch_output.h"
#include "launcher/launch/launch_plan.h"
#include "launcher/launch/launch_process.h"
#include "launcher/launch/session_folder.h"
#include "launcher/launch/signal_queue.h"

namespace lockstep::launcher {

/// How one start of a job ended.
struct AttemptEnd {
  using Clock = std::chrono::steady_clock;

  int status = 0;                ///< exit status for the program
  bool failed = false;           ///< it failed in a way that a restart may help
  LaunchFailure failure;         ///< the first failure, if there was one
  std::vector<int> lost;         ///< ranks that failed themselves, as far as that is known
  Clock::time_point failed_at;   ///< when the first failure was noticed
  std::vector<std::string> log;  ///< last output lines of the rank that failed
  std::string message;           ///< for the user; empty on success
  int lost_log = 0;              ///< errno of the first line that could not be shown
};

/// One start of a job. Runs the launcher, or the ranks themselves, as child processes, forwards
/// their output, and turns signals into requests to save and stop. No process of the job is left
/// when `run` returns or throws, or soon after this process was killed.
class LaunchAttempt {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts the job. `deadline` is that of --timeout. Throws ConfigError if a process cannot be
  /// started, DataError if output files cannot be created.
  LaunchAttempt(const LaunchPlan& plan, SignalQueue& signals,
                std::optional<Clock::time_point> deadline, bool append_output);
  ~LaunchAttempt();
  LaunchAttempt(const LaunchAttempt&) = delete;
  LaunchAttempt& operator=(const LaunchAttempt&) = delete;

  /// Waits until the job has ended. Meanwhile calls `watch`, if given, every 20 ms until it returns
  /// true. Throws DataError if output cannot be written.
  AttemptEnd run(std::function<bool()> watch = {});

 private:
  void wait_for_something();
  void start(const std::vector<std::string>& folders);
  std::unique_ptr<LaunchProcess> start(const LaunchPlan::Process& process);
  /// Starts ranks again that were lost and are due.
  void bring_back(Clock::time_point now);
  void read_output();
  /// Takes note of processes that have ended; returns whether all have.
  bool take_ends();
  /// Takes note of a rank that failed. Where the others go on by themselves, that is a failure of
  /// the job only once too few of them are left.
  void note_failure(const LaunchFailure& failure);
  /// Ends ranks that are stopped when others have ended well: these went on without them.
  void end_left_out();
  /// Whether only processes are left that have not joined the ranks, and these have ended well.
  bool is_over() const;
  /// Ends the processes that are left then.
  void end_outside();
  bool some_have_ended_well() const;
  /// Whether the ranks have met and train, so that they can go on without others.
  bool training_has_begun() const;
  /// Number of ranks that run, or have ended well; not those that have not joined the others yet.
  int ranks_left() const;
  /// The first rank that failed, if one has.
  const std::optional<LaunchFailure>& failure() const;
  /// Sets the limits for the end of the others once a rank has failed.
  void watch_failure();
  /// Whether, after a failure, ranks that launch itself started write a checkpoint, and may.
  bool is_saving(Clock::time_point now) const;
  /// Sets the limit for the launcher's own end once all ranks have ended.
  void watch_end();
  void take_signal(int signal);
  void act_on_deadlines();
  bool launches() const { return plan_.way != LaunchPlan::Way::kDirect; }
  bool ranks_are_there() const;
  /// Forwards the request to stop if the ranks are running; otherwise it stays pending.
  void try_request();
  /// Sends a signal to the launcher, or to the groups of all ranks.
  void send(int signal);
  void terminate();
  void kill();
  void drain();
  /// waitpid's status of the launcher, or of the rank that tells most.
  int wait_status() const;
  AttemptEnd conclude();
  /// Fills in how the rank that failed ended, where nobody has reported it.
  void complete(LaunchFailure& failure, int status) const;
  int status_of(int wait_status) const;

  const LaunchPlan& plan_;
  SignalQueue& signals_;
  OrphanKeeper orphans_;
  LaunchOutput output_;
  std::optional<SessionFolder> session_;  ///< of mpirun; outlives it
  const std::filesystem::file_time_type begun_ = std::filesystem::file_time_type::clock::now();
  uintmax_t starts_before_;                         ///< bytes of the run's starts.jsonl
  std::map<std::string, std::string> environment_;  ///< of all processes
  LaunchProcess::Care care_;
  std::vector<std::unique_ptr<LaunchProcess>> processes_;
  std::optional<LaunchFailure> seen_failure_;  ///< of a rank that launch itself started
  std::optional<LaunchFailure> seen_loss_;     ///< the same, while the others may go on
  std::vector<int> lost_;                      ///< such ranks that failed by themselves
  Comebacks comebacks_;
  std::set<int> joining_;  ///< ranks that were started again and have not joined the others
  std::optional<Clock::time_point> failed_at_;
  std::function<bool()> watch_;
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
  std::optional<Clock::time_point> outside_deadline_;  ///< of processes that have not joined
  std::optional<Clock::time_point> kill_deadline_;
};

}  // namespace lockstep::launcher
