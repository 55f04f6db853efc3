#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files/file_descriptor.h"
#include "launcher/launch/launch_failure.h"
#include "launcher/launch/launch_options.h"
#include "launcher/launch/output_splitter.h"

namespace lockstep::launcher {

/// Distributes the output lines of a job: to the terminal with the requested prefixes, to a file
/// for each rank and stream, and to memory, which keeps the last lines of each rank. The launcher's
/// own lines go to standard error, except for failure reports, which are kept for `failure`.
///
/// What a rank says from a line "...Error: ..." on is held back for a moment. If several ranks said
/// the same by then it is shown once, with their numbers: "ranks 0-3: MismatchError: ...". Lines
/// with tags or times are each shown at once.
class LaunchOutput {
 public:
  using Clock = std::chrono::steady_clock;

  /// `append`: continue existing files, after a restart. Throws DataError if the folder cannot be
  /// created.
  LaunchOutput(const LaunchOptions& options, bool append);
  ~LaunchOutput() { show_held(); }
  LaunchOutput(const LaunchOutput&) = delete;
  LaunchOutput& operator=(const LaunchOutput&) = delete;

  /// Handles one line. If a rank's file cannot be written, says so on standard error and goes on
  /// without that file.
  void take(const OutputLine& line);
  /// Returns when the held-back lines are to be shown; nothing if there are none.
  std::optional<Clock::time_point> held_until() const { return held_until_; }
  /// Shows the held-back lines if that time has come.
  void show_what_is_due(Clock::time_point now);
  /// Call when the launcher's output has ended.
  void finish();

  /// The launcher's report of the first rank that failed. Its text is empty if the launcher did not
  /// report how.
  const std::optional<LaunchFailure>& failure() const { return failure_; }
  /// Whether `failure` is a rank that ended with status 0 before MPI was started, for which those
  /// that have come to MPI_Init would wait for ever.
  bool start_is_broken() const { return start_is_broken_; }
  /// Whether the launcher has reported that all ranks run; Open MPI 5 and Slurm never do.
  bool ranks_run() const { return ranks_run_; }
  /// Number of ranks that the launcher has reported as ended with status 0; as above.
  int ended_well() const { return static_cast<int>(ended_well_.size()); }
  /// The last lines of a rank, from both streams, oldest first.
  std::vector<std::string> tail(int rank) const;
  /// The rank that was first to write "...Error: ..." to its standard error, other than
  /// PeerLostError, which is a consequence; -1 if none did.
  int first_error_rank() const { return first_complaint_; }
  /// The class of that error, "TimeoutError", or PeerLostError if there are only such; empty if no
  /// rank reported an error.
  const std::string& first_error_kind() const { return first_kind_; }
  /// Why a line could not be shown, the errno of the first such failure; 0 if all were.
  int lost_log() const { return lost_log_; }

 private:
  using Files = std::map<std::pair<int, bool>, std::unique_ptr<FileDescriptor>>;

  void take_launcher_line(const std::string& text);
  void end_block();
  void note(const LaunchFailure& failure);
  void follow_start(const StateLine& state);
  void show(const OutputLine& line);
  void write(std::FILE* stream, const std::string& text);
  bool hold(const OutputLine& line);
  void show_held();
  std::unique_ptr<FileDescriptor> open_file(int rank, bool is_error) const;
  void write_file(const OutputLine& line);

  LaunchOptions options_;
  bool append_;
  Files files_;  ///< null: cannot be written
  std::map<int, std::deque<std::string>> tails_;
  /// What each rank has said since its error, in the order of the errors.
  std::vector<std::pair<int, std::string>> held_;
  std::optional<Clock::time_point> held_until_;
  std::optional<std::string> block_;  ///< the current message between two lines of dashes
  std::optional<LaunchFailure> failure_;
  bool ranks_run_ = false;
  int first_complaint_ = -1;
  std::string first_kind_;
  bool all_registered_ = false;
  std::set<int> registered_;         ///< ranks that have come to MPI_Init
  std::set<int> failed_;             ///< ranks that mpirun reported as failed
  std::set<int> ended_well_;         ///< ranks that mpirun reported as ended with status 0
  std::optional<int> ended_before_;  ///< the first rank that ended with status 0 without
  bool start_is_broken_ = false;
  int lost_log_ = 0;
};

}  // namespace lockstep::launcher
