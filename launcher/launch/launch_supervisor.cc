#include "launcher/launch/launch_supervisor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/log_text.h"
#include "dist/rendezvous/socket.h"
#include "launcher/exit_code.h"
#include "launcher/launch/launch_attempt.h"
#include "launcher/launch/restart_log.h"
#include "launcher/launch/restart_policy.h"
#include "launcher/launch/signal_queue.h"
#include "train/report/run_directory.h"
#include "train/report/run_log.h"

namespace lockstep::launcher {
namespace {

template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_log(stderr, fmt::format("lockstep launch: {}\n",
                                fmt::format(format, std::forward<Arguments>(arguments)...)));
}

RunProgress progress_of(const LaunchPlan& plan) {
  return plan.trains ? read_progress(plan.run_directory) : RunProgress{};
}

/// What a restart has to do again.
std::string what_is_lost(const LaunchPlan& plan, const RunProgress& progress) {
  if (!plan.trains) return "";
  const int64_t again = std::max<int64_t>(0, progress.steps - progress.saved);
  return fmt::format("; it goes on from step {}, with {} step{} to do again", progress.saved, again,
                     again == 1 ? "" : "s");
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
  say("{}", end.message);
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

int supervise_launch(SignalQueue& signals,
                     const std::function<LaunchPlan(const LaunchStart&)>& plan_for,
                     const std::function<bool(int ranks)>& can_do) {
  using Clock = LaunchAttempt::Clock;
  const Clock::time_point begin = Clock::now();
  std::optional<RestartPolicy> policy;
  std::optional<RestartLog> log;
  LaunchStart start;
  for (;; ++start.restart) {
    const LaunchPlan plan = plan_for(start);
    const LaunchOptions& options = plan.options;
    const int allowed = options.max_restarts.value_or(0);
    if (!policy) {
      policy.emplace(RestartPolicy::Options{.max_restarts = allowed,
                                            .delay_seconds = options.restart_delay_seconds,
                                            .min_ranks = options.min_ranks,
                                            .can_do = can_do},
                     plan.ranks, plan.hosts);
      log.emplace(plan.trains && allowed > 0 ? plan.run_directory : "");
    }
    if (const int signal = signals.take(); signal != 0) {
      say("{}: not started; there is nothing to save", signal_name(signal));
      return plan.trains ? kStopped : 128 + signal;
    }
    std::optional<Clock::time_point> deadline;
    if (options.timeout_seconds > 0) {
      deadline = begin + std::chrono::ceil<std::chrono::milliseconds>(
                             std::chrono::duration<double>(options.timeout_seconds));
    }
    const RunProgress before = progress_of(plan);
    const auto look = [&] {
      if (const auto seconds = log->look()) {
        say("training again, {:.1f} s after the failure", *seconds);
      }
      return !log->is_waiting();
    };
    const AttemptEnd end =
        LaunchAttempt(plan, signals, deadline, start.restart > 0)
            .run(log->is_waiting() ? std::function<bool()>(look) : std::function<bool()>());
    look();
    if (!end.failed) log->finish();
    report(end, plan);
    tell_lost_lines(end, plan);
    if (!end.failed) return end.status;
    const RunProgress after = progress_of(plan);
    const RestartPolicy::Decision next =
        policy->after(end.failure, after.saved_in_time > before.saved_in_time);
    log->note({.failure = end.failure,
               .lost = end.lost,
               .cause = end.message,
               .host = end.failure.host.empty() && plan.hosts.empty() ? dist::host_name()
                                                                      : end.failure.host,
               .status = end.status,
               .ranks = plan.ranks,
               .progress = after,
               .at = end.failed_at,
               .again = next.again,
               .restart = start.restart + 1});
    if (!next.again) {
      if (allowed > 0) say("no restart: {} without progress are allowed", allowed);
      return end.status;
    }
    say("restart {} of {} in {} s{}{}", next.number, allowed, next.delay_seconds,
        next.note.empty() ? "" : ", " + next.note, what_is_lost(plan, after));
    start.ranks = next.ranks;
    start.left_out = next.left_out;
    start.keep_slow = next.keep_slow;
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::duration<double>(next.delay_seconds));
    if (const int signal = signals.take_within(time); signal != 0) {
      say("{}: not started again", signal_name(signal));
      return 128 + signal;
    }
  }
}

}  // namespace lockstep::launcher
