#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/launch/launch_failure.h"

namespace lockstep::launcher {

/// How far a run in a directory has come, as its files tell.
struct RunProgress {
  int64_t steps = 0;  ///< the last step that metrics.jsonl holds; 0: none
  int64_t saved = 0;  ///< the step from which training would resume: that of the newest checkpoint
  int64_t saved_in_time = 0;  ///< the same without checkpoints that an error made
};
/// Reads the files of a run; a run whose files cannot be read has made no progress.
RunProgress read_progress(const std::filesystem::path& run_directory);

/// Whether a run in a directory has begun to write a checkpoint, or to remove one, and has not
/// ended it. What was last changed before `since` is of a process that has ended.
bool writes_checkpoint(const std::filesystem::path& run_directory,
                       std::filesystem::file_time_type since);

/// One failure of a job.
struct LostStart {
  LaunchFailure failure;
  std::vector<int> lost;                     ///< all ranks that failed themselves
  std::string cause;                         ///< for the user
  std::string host;                          ///< of the rank that failed first; empty: not known
  int status = 0;                            ///< exit status that the job would have ended with
  int ranks = 0;                             ///< number of ranks that the job had
  RunProgress progress;                      ///< at the failure
  std::chrono::steady_clock::time_point at;  ///< when it was noticed
  bool again = false;                        ///< whether the job is started again
  int restart = 0;                           ///< number of that start, from 1
};

/// Keeps a line for each failure of a training job in `restarts.jsonl` of its run directory:
/// {"at", "cause", "rank", "lost" ("ranks 1, 3", where there were several), "host", "status",
/// "ranks", "step_lost", "resumed_from", "steps_again", "restart", "training_again_s"}. A line is
/// written when the first step after the restart is done, or when it is known that there will be
/// none; then "training_again_s" is null. Errors of writing are ignored: a report must not end a
/// job.
class RestartLog {
 public:
  using Clock = std::chrono::steady_clock;

  /// `run_directory` is empty for programs that train nothing: then nothing is kept.
  explicit RestartLog(std::filesystem::path run_directory);
  /// Writes a line that still waits.
  ~RestartLog();
  RestartLog(const RestartLog&) = delete;
  RestartLog& operator=(const RestartLog&) = delete;

  /// Writes the line before if it still waits.
  void note(const LostStart& lost);
  /// Whether a line waits for the first step after a restart.
  bool is_waiting() const { return waiting_.has_value(); }
  /// Call while `is_waiting`: looks whether training has come beyond the step from which it
  /// resumed. Returns the seconds from the failure to now, once, when it has.
  std::optional<double> look();
  /// Tells that the restarted job has ended well, with or without a step of its own.
  void finish();

 private:
  struct Waiting {
    LostStart lost;
    std::string at;
  };
  void write(const Waiting& waiting, std::optional<double> seconds);

  std::filesystem::path folder_;
  std::optional<Waiting> waiting_;
};

}  // namespace lockstep::launcher
