#pragma once

#include <optional>
#include <string>

namespace lockstep::launcher {

/// A launcher's report of the first rank that failed.
struct LaunchFailure {
  int rank = -1;     ///< -1: not reported
  std::string host;  ///< empty: not reported
  int signal = 0;    ///< signal that ended it; 0: none
  int status = 0;    ///< its exit status
  std::string text;  ///< for the user, without rank and host: "was ended by signal 9 (Killed)"
  bool host_lost = false;  ///< the launcher no longer reaches the host
  bool slow = false;       ///< it did not fail: the job is to go on without it

  friend bool operator==(const LaunchFailure&, const LaunchFailure&) = default;
};

/// Parses a failure message of mpirun (Open MPI 4 and 5) or srun; nothing for other messages. A
/// result without `text` only states that some rank failed; another message has the details.
std::optional<LaunchFailure> read_failure(const std::string& message);

/// Parses the error by which training asks to go on without a slow rank (SlowRankError in
/// train/run/slow_rank.h), with exit status `status`; nothing for other lines.
std::optional<LaunchFailure> read_slow_rank(const std::string& line, int status);

/// A line that Open MPI 4 prints with state_base_verbose, needed because its other messages are
/// sometimes lost.
struct StateLine {
  bool running = false;                  ///< all ranks have been started
  bool all_registered = false;           ///< all ranks have come to MPI_Init
  std::optional<int> registered;         ///< a rank that has come to MPI_Init
  std::optional<int> ended;              ///< a rank that ended with exit status 0
  std::optional<LaunchFailure> failure;  ///< without the exit status or signal
};
/// Parses such a line; nothing for other lines.
std::optional<StateLine> read_state(const std::string& line);

/// Describes a signal and its likely cause: "signal 9 (Killed); often the system was out of
/// memory".
std::string signal_text(int signal);

/// Formats a failure: "rank 1 on lsh0 was ended by signal 9 (Killed); often the system was out of
/// memory".
std::string to_text(const LaunchFailure& failure);

}  // namespace lockstep::launcher
