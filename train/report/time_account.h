#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_line.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// What a run's wall time is spent on.
enum class TimeUse {
  kTrain,       ///< steps that counted
  kData,        ///< their waits for data
  kEvaluation,  ///< on held-out data
  kCheckpoint,  ///< training stood still for checkpoints
  kRedone,      ///< steps that were lost with a process, rolled back or left out as not finite
  kStart,       ///< from the begin of a process to its first step
  kRestart,     ///< the same after a process that was lost, with the time that nobody trained
};
inline constexpr size_t kTimeUses = 7;

/// Seconds of a run's wall time over all its starts, by their use. The time between a clean stop
/// and the next start is nobody's and is left out.
struct RunTimes {
  double wall = 0;
  std::array<double, kTimeUses> used{};
  int64_t starts = 1;
  int64_t restarts = 0;  ///< starts after a process that was lost

  double of(TimeUse use) const { return used[static_cast<size_t>(use)]; }
  /// What is left: progress and metrics, samples, the model's export.
  double other() const;
  /// Share of the wall time in steps that counted, from 0 to 1; 0 for a run without time.
  double goodput() const { return wall > 0 ? of(TimeUse::kTrain) / wall : 0; }
};

/// "93.1 % of 12:33 in steps that count; start 3.1 %, restart 2.0 % (2 times), other 1.8 %".
std::string goodput_text(const RunTimes& times);

/// Keeps account of a run's wall time, over restarts and resumes, in the lines of metrics.jsonl,
/// and in goodput.json where a start goes on with the run and where it ends. Not thread-safe.
///
/// Each step's line has the sums so far: "at" (seconds since 1970, when the line was written),
/// "wall_s", "train_s", "data_s" and "goodput"; and those of "evaluation_s", "checkpoint_s",
/// "redone_s", "start_s" and "restart_s" that changed since the line before. All of them,
/// "other_s", "starts" and "restarts" are in the first line of a start, the first after a
/// checkpoint, and in goodput.json.
class TimeAccount {
 public:
  using Clock = std::chrono::steady_clock;

  /// Goes on with the account of a run, of whose metrics nothing has been dropped yet, for training
  /// that goes on after `step` steps; begins one where there is none. `begun`: when this process
  /// began. The time of later steps is that of steps to do again. Writes goodput.json where the
  /// account goes on. Throws DataError if files cannot be read or written.
  TimeAccount(const RunDirectory& directory, int64_t step, Clock::time_point begun);

  /// The time since the call before was spent on `use`, or on other things (`spend_other`).
  void spend(TimeUse use);
  void spend_other() { last_ = Clock::now(); }
  /// The start is over: the time so far was spent on it.
  void spend_on_start() { spend(opening_); }
  /// It was spent on a step. `counts`: whether the step updated the weights.
  void spend_on_step(double waited_for_data, bool counts);

  /// The state after `step` steps is in a checkpoint, or about to be.
  void mark(int64_t step);
  /// Training goes back to the checkpoint of `step`: what was spent since is to be done again.
  void go_back(int64_t step);

  RunTimes so_far() const;
  /// Adds the sums to a step's line.
  void add_to(JsonLine& line);
  /// The run came to its end after `step` steps: writes goodput.json, in which "ended" is `how`,
  /// kFinished or kStopped.
  void end(int64_t step, std::string_view how);

 private:
  /// The sums when the state after a step was saved.
  struct Mark {
    int64_t step = 0;
    double train = 0;
    double data = 0;
  };
  double& of(TimeUse use) { return times_.used[static_cast<size_t>(use)]; }
  void lose_since(const Mark& mark);
  void add_to(JsonLine& line, bool all);
  void write(JsonLine line);

  std::filesystem::path file_;
  RunTimes times_;  ///< wall: until this process began
  Clock::time_point begun_;
  Clock::time_point last_;
  TimeUse opening_ = TimeUse::kStart;
  std::vector<Mark> marks_;  ///< by step
  bool all_are_due_ = true;  ///< in the next line
  std::array<double, kTimeUses> written_{};
};

}  // namespace lockstep::train
