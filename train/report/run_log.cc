#include "train/report/run_log.h"

#include <cmath>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep::train {

namespace {

constexpr const char* kLostLog = "log_lost";

}  // namespace

RunLog::RunLog(const RunDirectory& directory, std::FILE* terminal, const RunLogOptions& options)
    : metrics_(directory.metrics()),
      events_(directory.path(), options.first_step),
      prometheus_(directory, options.total_steps),
      progress_(terminal, ProgressStyle::of(terminal),
                {.total_steps = options.total_steps,
                 .log_every = options.log_every,
                 .format = options.format}),
      earlier_error_(options.log_error) {}

void RunLog::record(const StepReport& report, const std::optional<EvaluationReport>& evaluation,
                    TimeAccount* times) {
  JsonLine line = step_record(report);
  std::vector<Scalar> scalars = {
      {"train/loss", report.loss},
      {"train/grad_norm", report.grad_norm},
      {"train/lr", report.learning_rate},
      {"perf/step_ms", report.step_ms},
      {"perf/data_wait_ms", report.data_wait_ms},
      {"perf/tokens_per_s", report.tokens_per_s},
      {"perf/memory_peak_bytes", static_cast<double>(report.memory_bytes)}};
  if (report.exposed_comm_ms >= 0) {
    scalars.push_back({"perf/exposed_comm_ms", report.exposed_comm_ms});
  }
  if (report.sent_bytes >= 0) {
    scalars.push_back({"perf/sent_bytes", static_cast<double>(report.sent_bytes)});
  }
  if (report.mfu >= 0) scalars.push_back({"perf/mfu", report.mfu});
  if (evaluation) {
    progress_.evaluation(*evaluation);
    line.add("val_loss", evaluation->loss);
    add_scores(line, *evaluation);
    scalars.push_back({"val/loss", evaluation->loss});
    if (!std::isnan(evaluation->bits_per_byte)) {
      scalars.push_back({"val/bits_per_byte", evaluation->bits_per_byte});
    }
    if (!std::isnan(evaluation->accuracy)) {
      scalars.push_back({"val/accuracy", evaluation->accuracy});
    }
  }
  const int lost = earlier_error_ != 0 ? earlier_error_ : progress_.failure();
  if (lost != 0 && !std::exchange(told_lost_log_, true)) {
    line.add(kLostLog, std::generic_category().message(lost));
  }
  if (times != nullptr) {
    times->add_to(line);
    scalars.push_back({"perf/goodput", times->so_far().goodput()});
  }
  metrics_.write(line);
  events_.write(report.step, scalars);
  prometheus_.update(report, evaluation, times);
}

void RunLog::go_back(int64_t step) {
  metrics_.write(JsonLine().add("rollback_to", step));
  events_.restart(step + 1);
}

void RunLog::close() {
  metrics_.close();
  events_.close();
  prometheus_.finish();
}

void tell_lost_log(const RunDirectory& directory, int error) noexcept {
  try {
    MetricsWriter metrics(directory.metrics());
    metrics.write(JsonLine().add(kLostLog, std::generic_category().message(error)));
    metrics.close();
  } catch (const std::exception&) {
    // The run is over and saved; neither its log nor its metrics can be written.
  }
}

}  // namespace lockstep::train
