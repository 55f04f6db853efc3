#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>

#include "train/report/event_file.h"
#include "train/report/metrics.h"
#include "train/report/progress.h"
#include "train/report/run_directory.h"
#include "train/report/step_line.h"

namespace lockstep::train {

struct RunLogOptions {
  int64_t total_steps = 0;
  int64_t first_step = 1;  ///< the next step's number, above 1 if the run was resumed
  int64_t log_every = 10;
  LogFormat format = LogFormat::kText;
};

/// Writes reports of steps to the terminal, metrics.jsonl and a TensorBoard event file in the run
/// directory. Tags: train/loss, train/grad_norm, train/lr, val/loss, val/bits_per_byte,
/// val/accuracy, perf/step_ms, perf/data_wait_ms, perf/tokens_per_s, perf/memory_peak_bytes; with
/// several ranks perf/exposed_comm_ms and perf/sent_bytes; if the peak rate is known, perf/mfu.
/// Failures to write files throw DataError; those of the terminal are ignored. Not thread-safe.
class RunLog {
 public:
  /// `terminal` must outlive this object.
  RunLog(const RunDirectory& directory, std::FILE* terminal, const RunLogOptions& options);

  /// Shows a step on the terminal. Call it before an evaluation, which takes time.
  void show(const StepReport& report) { progress_.step(report); }
  /// Shows the evaluation after the step, if there was one, and writes both to the files.
  void record(const StepReport& report, const std::optional<EvaluationReport>& evaluation);
  /// Prints a permanent line on the terminal.
  void note(std::string_view line) { progress_.note(line); }
  /// Records that training went back to `step` finished steps: later records are void.
  void go_back(int64_t step);
  /// Waits until the metrics so far are on stable storage.
  void sync() { metrics_.sync(); }
  /// Closes the files. Throws DataError for write errors that the system reports only now.
  void close();

 private:
  MetricsWriter metrics_;
  EventFile events_;
  Progress progress_;
};

}  // namespace lockstep::train
