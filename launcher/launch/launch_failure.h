#pragma once

#include <optional>
#include <string>

namespace lockstep::launcher {

/// What a launcher says of the first rank that failed.
struct LaunchFailure {
  int rank = -1;     ///< -1: none was named
  std::string host;  ///< empty: not said
  int signal = 0;    ///< that ended it
  int status = 0;    ///< its exit status
  std::string text;  ///< for a person, without rank and host: "was ended by signal 9 (Killed)"

  friend bool operator==(const LaunchFailure&, const LaunchFailure&) = default;
};

/// What mpirun's or srun's own message tells, of Open MPI 4 and 5; nothing for other messages. One
/// without a text says only that some rank failed; the rest follows in another.
std::optional<LaunchFailure> read_failure(const std::string& message);

/// What Open MPI 4 tells with state_base_verbose, where its other messages are sometimes lost.
struct StateLine {
  bool running = false;                  ///< all ranks have been started
  std::optional<LaunchFailure> failure;  ///< how it ended, if status or signal did it, is not said
};
/// Nothing for other lines.
std::optional<StateLine> read_state(const std::string& line);

/// "signal 9 (Killed)", and what that one often means.
std::string signal_text(int signal);

/// "rank 1 on lsh0 was ended by signal 9 (Killed); often the system was out of memory".
std::string to_text(const LaunchFailure& failure);

}  // namespace lockstep::launcher
