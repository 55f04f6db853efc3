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
  int64_t first_step = 1;  ///< the next step's number, above 1 when a run goes on
  int64_t log_every = 10;
  LogFormat format = LogFormat::kText;
};

/// Everything that is told about steps: the terminal, metrics.jsonl and a TensorBoard event file in
/// the run directory. Tags: train/loss, train/grad_norm, train/lr, val/loss, val/bits_per_byte,
/// val/accuracy, perf/step_ms, perf/data_wait_ms, perf/tokens_per_s, perf/memory_peak_bytes; with
/// several ranks perf/exposed_comm_ms and perf/sent_bytes; where the peak is known, perf/mfu.
/// The files' failures throw DataError; the terminal's are ignored. Not thread-safe.
class RunLog {
 public:
  /// `terminal` must outlive this object.
  RunLog(const RunDirectory& directory, std::FILE* terminal, const RunLogOptions& options);

  /// Shows a step on the terminal, before anything that takes time follows it.
  void show(const StepReport& report) { progress_.step(report); }
  /// Shows the evaluation after the step, if there was one, and writes both to the files.
  void record(const StepReport& report, const std::optional<EvaluationReport>& evaluation);
  /// A line of its own on the terminal.
  void note(std::string_view line) { progress_.note(line); }
  /// Says that training goes on after `step` finished steps and what was told of later ones is
  /// void.
  void go_back(int64_t step);
  /// Returns once the metrics so far are on stable storage.
  void sync() { metrics_.sync(); }
  /// Reports what the system held back until closing.
  void close();

 private:
  MetricsWriter metrics_;
  EventFile events_;
  Progress progress_;
};

}  // namespace lockstep::train
