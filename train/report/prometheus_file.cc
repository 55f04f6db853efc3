#include "train/report/prometheus_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <span>
#include <system_error>

#include "core/base/files/file_descriptor.h"

namespace lockstep::train {
namespace {

/// The value of a label: three characters are escaped.
std::string label_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

std::string prometheus_text(const std::string& run, int64_t total_steps, const StepReport& step,
                            const std::optional<EvaluationReport>& evaluation,
                            const std::optional<RunTimes>& times, double updated) {
  std::string text;
  const std::string label = label_text(run);
  const auto gauge = [&](const char* name, const char* help, double value) {
    text += fmt::format(
        "# HELP lockstep_{0} {1}\n# TYPE lockstep_{0} gauge\nlockstep_{0}{{run=\"{2}\"}} {3}\n",
        name, help, label, number_text(value));
  };
  gauge("updated_timestamp_seconds", "When these numbers were written.", updated);
  gauge("steps_done", "Steps that are done.", static_cast<double>(step.step));
  gauge("steps_wanted", "Steps that the run is to make.", static_cast<double>(total_steps));
  gauge("loss", "Training loss of the step, in nats.", step.loss);
  gauge("gradient_norm", "Norm of the step's gradient.", step.grad_norm);
  gauge("learning_rate", "Learning rate of the step.", step.learning_rate);
  gauge("step_seconds", "Time of the step.", step.step_ms / 1e3);
  gauge("data_wait_seconds", "Part of it in which the step waited for data.",
        step.data_wait_ms / 1e3);
  if (step.exposed_comm_ms >= 0) {
    gauge("exposed_communication_seconds", "Part of it in which the step waited for other ranks.",
          step.exposed_comm_ms / 1e3);
  }
  gauge("tokens_per_second", "Tokens of the step over its time.", step.tokens_per_s);
  gauge("memory_peak_bytes", "Peak of the device's memory on loan.",
        static_cast<double>(step.memory_bytes));
  if (step.mfu >= 0) gauge("model_flops_utilisation_ratio", "Of the peak rate, 0 to 1.", step.mfu);
  if (evaluation) {
    gauge("held_out_step", "Step of the newest evaluation.", static_cast<double>(evaluation->step));
    gauge("held_out_loss", "Held-out loss, in nats.", evaluation->loss);
    if (!std::isnan(evaluation->bits_per_byte)) {
      gauge("held_out_bits_per_byte", "Held-out bits per byte.", evaluation->bits_per_byte);
    }
  }
  if (times) {
    gauge("goodput_ratio", "Wall time in steps that count, 0 to 1.", times->goodput());
    gauge("starts", "Starts of the run.", static_cast<double>(times->starts));
    gauge("restarts", "Starts after a process that was lost.",
          static_cast<double>(times->restarts));
  }
  return text;
}

PrometheusFile::PrometheusFile(const RunDirectory& directory, int64_t total_steps)
    : file_(directory.prometheus()),
      run_(std::filesystem::absolute(directory.path() / "x")
               .lexically_normal()
               .parent_path()
               .filename()),
      total_steps_(total_steps) {}

void PrometheusFile::update(const StepReport& report,
                            const std::optional<EvaluationReport>& evaluation,
                            const TimeAccount* times) noexcept {
  step_ = report;
  if (evaluation) evaluation_ = evaluation;
  if (times != nullptr) times_ = times->so_far();
  is_new_ = true;
  if (!written_ || Clock::now() - *written_ >= kInterval) write();
}

void PrometheusFile::finish() noexcept {
  if (is_new_) write();
}

void PrometheusFile::write() noexcept {
  written_ = Clock::now();
  is_new_ = false;
  // Not AtomicFile: what was in the file when the machine stopped is of no use, so that no step
  // need wait for the disk. The run's lock keeps others from the name. Scrapers read names in
  // .prom.
  const std::filesystem::path partial = file_.string() + ".partial";
  try {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const std::string text = prometheus_text(run_, total_steps_, step_, evaluation_, times_, now);
    FileDescriptor file(partial, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(std::as_bytes(std::span(text)));
    file.close();
    std::filesystem::rename(partial, file_);
  } catch (const std::exception&) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
  }
}

}  // namespace lockstep::train
