#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "train/report/run_directory.h"
#include "train/report/step_line.h"
#include "train/report/time_account.h"

namespace lockstep::train {

/// Keeps the newest numbers of a run in its metrics.prom, in the text format of Prometheus, for
/// node_exporter's textfile collector or any other scraper of files. Readers see the file whole,
/// the old one or the new one. It is renewed when it is due, so that it costs steps nothing
/// noticeable, and at the end. That it cannot be written does not disturb the run. Not thread-safe.
class PrometheusFile {
 public:
  static constexpr std::chrono::seconds kInterval{5};

  /// Writes nothing yet. `total_steps`: those that the run is to make.
  PrometheusFile(const RunDirectory& directory, int64_t total_steps);

  void set_total_steps(int64_t steps) { total_steps_ = steps; }
  /// Takes the numbers of a step. `times` may be null.
  void update(const StepReport& report, const std::optional<EvaluationReport>& evaluation,
              const TimeAccount* times) noexcept;
  /// Writes the last numbers, if there are any that are not in the file.
  void finish() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  void write() noexcept;

  std::filesystem::path file_;
  std::string run_;  ///< name of the directory
  int64_t total_steps_;
  StepReport step_;
  std::optional<EvaluationReport> evaluation_;  ///< the newest
  std::optional<RunTimes> times_;
  bool is_new_ = false;  ///< the numbers are not in the file
  std::optional<Clock::time_point> written_;
};

/// The text of the file; `updated` in seconds since 1970. The label "run" names the run.
std::string prometheus_text(const std::string& run, int64_t total_steps, const StepReport& step,
                            const std::optional<EvaluationReport>& evaluation,
                            const std::optional<RunTimes>& times, double updated);

}  // namespace lockstep::train
