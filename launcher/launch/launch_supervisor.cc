#include "launcher/launch/launch_supervisor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/check.h"
#include "core/base/log_text.h"
#include "launcher/exit_code.h"
#include "launcher/launch/launch_attempt.h"
#include "launcher/launch/signal_queue.h"
#include "train/report/run_directory.h"
#include "train/report/run_log.h"
#include "train/run/checkpoint.h"

namespace lockstep::launcher {
namespace {

constexpr double kLongestBackoff = 60;

/// The step from which training would resume; -1 if no checkpoint can be seen.
int64_t newest_checkpoint(const LaunchPlan& plan) {
  int64_t newest = -1;
  if (!plan.trains) return newest;
  const std::filesystem::path folder = std::filesystem::path(plan.run_directory) / "checkpoints";
  try {
    for (const train::CheckpointEntry& entry : train::list_checkpoints(folder)) {
      if (entry.complete) newest = std::max(newest, entry.step);
    }
  } catch (const CheckpointError&) {
    // It cannot be listed: no progress can be seen.
  }
  return newest;
}

bool has_flight_logs(const LaunchPlan& plan) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(plan.run_directory) / "flight";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with("flight.rank")) return true;
  }
  return false;
}

void report(const AttemptEnd& end, const LaunchPlan& plan) {
  if (end.message.empty()) return;
  std::fflush(stdout);
  write_log(stderr, fmt::format("lockstep launch: {}\n", end.message));
  if (!end.log.empty()) {
    write_log(stderr, fmt::format("  the last lines of rank {}:\n", end.failure.rank));
    for (const std::string& line : end.log) write_log(stderr, fmt::format("    {}\n", line));
    if (!plan.options.output_folder.empty()) {
      write_log(stderr, fmt::format("  all of them: {}/1/rank.{}\n", plan.options.output_folder,
                                    end.failure.rank));
    }
  }
  if (end.failed && plan.trains && has_flight_logs(plan)) {
    write_log(stderr, fmt::format("  what each rank was waiting for: lockstep trace {}\n",
                                  plan.run_directory));
  }
}

/// Tells in the metrics of the run, which its ranks have finished or stopped, that lines were lost.
/// They themselves wrote to this program, which read all.
void tell_lost_lines(const AttemptEnd& end, const LaunchPlan& plan) {
  if (end.lost_log == 0 || !plan.trains) return;
  if (end.status != kSuccess && end.status != kStopped) return;
  try {
    train::tell_lost_log(train::RunDirectory::open(plan.run_directory), end.lost_log);
  } catch (const DataError&) {
    // The run is on another host's disk.
  }
}

}  // namespace

int supervise_launch(SignalQueue& signals, const std::function<LaunchPlan(int restart)>& plan_for) {
  using Clock = LaunchAttempt::Clock;
  const Clock::time_point begin = Clock::now();
  int failures = 0;  // since the last new checkpoint
  for (int restart = 0;; ++restart) {
    const LaunchPlan plan = plan_for(restart);
    const LaunchOptions& options = plan.options;
    if (const int signal = signals.take(); signal != 0) {
      write_log(stderr, fmt::format("lockstep launch: {}: not started; there is nothing to save\n",
                                    signal_name(signal)));
      return plan.trains ? kStopped : 128 + signal;
    }
    std::optional<Clock::time_point> deadline;
    if (options.timeout_seconds > 0) {
      deadline = begin + std::chrono::ceil<std::chrono::milliseconds>(
                             std::chrono::duration<double>(options.timeout_seconds));
    }
    const int64_t checkpoint = newest_checkpoint(plan);
    const AttemptEnd end = LaunchAttempt(plan, signals, deadline, restart > 0).run();
    report(end, plan);
    tell_lost_lines(end, plan);
    if (!end.failed) return end.status;
    if (newest_checkpoint(plan) > checkpoint) failures = 0;
    const int allowed = options.max_restarts.value_or(0);
    if (failures >= allowed) {
      if (allowed > 0) {
        write_log(
            stderr,
            fmt::format("lockstep launch: no restart: {} without progress are allowed\n", allowed));
      }
      return end.status;
    }
    const double wait =
        std::min(kLongestBackoff, options.backoff_seconds * std::exp2(std::min(failures, 30)));
    ++failures;
    write_log(stderr,
              fmt::format("lockstep launch: restart {} of {} in {} s\n", failures, allowed, wait));
    const auto time =
        std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(wait));
    if (const int signal = signals.take_within(time); signal != 0) {
      write_log(stderr,
                fmt::format("lockstep launch: {}: not started again\n", signal_name(signal)));
      return 128 + signal;
    }
  }
}

}  // namespace lockstep::launcher
