#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>

#include "train/report/event_file.h"
#include "train/report/metrics.h"
#include "train/report/progress.h"
#include "train/report/prometheus_file.h"
#include "train/report/run_directory.h"
#include "train/report/step_line.h"
#include "train/report/time_account.h"

namespace lockstep::train {

struct RunLogOptions {
  int64_t total_steps = 0;
  int64_t first_step = 1;  ///< the next step's number, above 1 if the run was resumed
  int64_t log_every = 10;
  LogFormat format = LogFormat::kText;
  int log_error = 0;  ///< errno of an earlier message that was lost; 0: none
};

/// Writes reports of steps to the terminal, metrics.jsonl, metrics.prom and a TensorBoard event
/// file in the run directory. Tags: train/loss, train/grad_norm, train/lr, val/loss,
/// val/bits_per_byte, val/accuracy, perf/step_ms, perf/data_wait_ms, perf/tokens_per_s,
/// perf/memory_peak_bytes, perf/goodput; with several ranks perf/exposed_comm_ms and
/// perf/sent_bytes; if the peak rate is known, perf/mfu. Failures to write files throw DataError.
/// One of the terminal does not disturb the run: the next line of metrics.jsonl says why it lost
/// messages (`log_lost`), once. Not thread-safe.
class RunLog {
 public:
  /// `terminal` must outlive this object.
  RunLog(const RunDirectory& directory, std::FILE* terminal, const RunLogOptions& options);

  /// Shows a step on the terminal. Call it before an evaluation, which takes time.
  void show(const StepReport& report) { progress_.step(report); }
  /// Shows the evaluation after the step, if there was one, and writes both to the files, with the
  /// sums of `times`, which may be null.
  void record(const StepReport& report, const std::optional<EvaluationReport>& evaluation,
              TimeAccount* times = nullptr);
  /// Prints a permanent line on the terminal.
  void note(std::string_view line) { progress_.note(line); }
  /// The run is to make so many steps instead of those of its options.
  void set_total_steps(int64_t steps) {
    progress_.set_total_steps(steps);
    prometheus_.set_total_steps(steps);
  }
  /// Records that training went back to `step` finished steps: later records are void.
  void go_back(int64_t step);
  /// Waits until the metrics so far are on stable storage.
  void sync() { metrics_.sync(); }
  /// Closes the files. Throws DataError for write errors that the system reports only now.
  void close();
  /// Whether metrics.jsonl says that messages were lost.
  bool told_lost_log() const { return told_lost_log_; }

 private:
  MetricsWriter metrics_;
  EventFile events_;
  PrometheusFile prometheus_;
  Progress progress_;
  int earlier_error_;
  bool told_lost_log_ = false;
};

/// Appends a line to the metrics of a run that has ended: messages of it were lost, because of the
/// error number `error`. Throws nothing: there is nobody left to tell.
void tell_lost_log(const RunDirectory& directory, int error) noexcept;

}  // namespace lockstep::train
