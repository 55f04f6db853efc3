#include "train/report/step_line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/check.h"
#include "core/base/nearest.h"

namespace lockstep::train {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"text", "json", "nanogpt", "llmc"};
constexpr double kNoticeableWait = 0.05;  // of the step

}  // namespace

double model_flops_used(double flops_per_token, double tokens_per_s, double peak_tflops) {
  return peak_tflops > 0 ? flops_per_token * tokens_per_s / (peak_tflops * 1e12) : -1;
}

JsonLine step_record(const StepReport& report) {
  JsonLine line;
  line.add("step", report.step)
      .add("loss", report.loss)
      .add("grad_norm", report.grad_norm)
      .add("lr", report.learning_rate)
      .add("step_ms", report.step_ms)
      .add("data_wait_ms", report.data_wait_ms)
      .add("tokens_per_s", report.tokens_per_s)
      .add("memory_peak_bytes", report.memory_bytes);
  if (report.exposed_comm_ms >= 0) line.add("exposed_comm_ms", report.exposed_comm_ms);
  if (report.sent_bytes >= 0) line.add("sent_bytes", report.sent_bytes);
  if (report.checkpoint_ms >= 0) line.add("checkpoint_ms", report.checkpoint_ms);
  if (report.mfu >= 0) line.add("mfu", report.mfu);
  if (report.compiled_passes >= 0) line.add("compiled_passes", report.compiled_passes);
  if (report.called_passes >= 0) line.add("called_passes", report.called_passes);
  if (report.replayed) line.add("replayed", *report.replayed);
  if (report.loss_scale >= 0) line.add("loss_scale", report.loss_scale);
  if (report.skipped) line.add("skipped", true);
  if (!report.non_finite.empty()) line.add("non_finite", report.non_finite);
  if (!report.audit.empty()) line.add("audit", report.audit);
  if (!report.spike.empty()) line.add("spike", report.spike);
  if (report.ranks) add_to(line, *report.ranks);
  if (!report.rank_leaves.empty()) {
    const std::vector<double> leaves(report.rank_leaves.begin(), report.rank_leaves.end());
    line.add("rank_leaves", std::span<const double>(leaves));
  }
  return line;
}

void add_scores(JsonLine& line, const EvaluationReport& report) {
  if (!std::isnan(report.bits_per_byte)) line.add("val_bits_per_byte", report.bits_per_byte);
  if (!std::isnan(report.accuracy)) line.add("val_accuracy", report.accuracy);
}

LogFormat parse_log_format(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<LogFormat>(found - kNames.begin());
  const auto meant = nearest(name, kNames);
  throw ConfigError(fmt::format("[log format] \"{}\" is unknown: expected one of {}.{}", name,
                                fmt::join(kNames, ", "),
                                meant ? fmt::format(" Did you mean {}?", *meant) : ""));
}

std::vector<std::string> details(const StepReport& report) {
  std::vector<std::string> texts = {fmt::format("grad norm {:.3f}", report.grad_norm),
                                    fmt::format("{:.1f} ms", report.step_ms),
                                    fmt::format("lr {:.3e}", report.learning_rate)};
  if (report.mfu >= 0) texts.push_back(fmt::format("{:.1f}% MFU", 100 * report.mfu));
  if (report.data_wait_ms > kNoticeableWait * report.step_ms) {
    texts.push_back(fmt::format("data wait {:.1f} ms", report.data_wait_ms));
  }
  texts.push_back(format_bytes(report.memory_bytes));
  return texts;
}

std::string measurements(const StepReport& report) {
  return fmt::format(
      "loss {:.4f} | grad norm {:.3f} | lr {:.3e} | {:.1f} ms | {:.0f} tok/s{} | {}{}{}",
      report.loss, report.grad_norm, report.learning_rate, report.step_ms, report.tokens_per_s,
      report.mfu >= 0 ? fmt::format(" | {:.1f}% MFU", 100 * report.mfu) : "",
      format_bytes(report.memory_bytes),
      report.data_wait_ms > kNoticeableWait * report.step_ms
          ? fmt::format(" | data wait {:.1f} ms", report.data_wait_ms)
          : "",
      report.skipped ? " | skipped" : "");
}

std::string step_line(LogFormat format, const StepReport& report, const StepContext& context) {
  switch (format) {
    case LogFormat::kJson:
      return step_record(report).text();
    case LogFormat::kNanoGpt:
      return fmt::format("iter {}: loss {:.4f}, time {:.2f}ms, mfu {:.2f}%", report.step - 1,
                         report.loss, report.step_ms, 100 * report.mfu);
    case LogFormat::kLlmC:
      return fmt::format(
          "step {:4}/{} | loss {:7.6f} ({:+.2f}z)| norm {:6.4f} ({:+.2f}z)| lr {:.2e} | {:.2f} ms "
          "| {:.1f}% bf16 MFU | {:.0f} tok/s",
          report.step, context.total_steps, report.loss, context.loss_z, report.grad_norm,
          context.norm_z, report.learning_rate, report.step_ms, 100 * report.mfu,
          report.tokens_per_s);
    case LogFormat::kText:
      break;
  }
  const auto width = fmt::formatted_size("{}", context.total_steps);
  return fmt::format("step {:>{}}/{} | {} | ETA {}", report.step, width, context.total_steps,
                     measurements(report), context.eta);
}

std::string evaluation_line(LogFormat format, const EvaluationReport& report) {
  switch (format) {
    case LogFormat::kJson: {
      JsonLine line = JsonLine().add("step", report.step).add("val_loss", report.loss);
      add_scores(line, report);
      return line.text();
    }
    case LogFormat::kNanoGpt:
      return fmt::format("step {}: train loss {:.4f}, val loss {:.4f}", report.step,
                         report.train_loss, report.loss);
    case LogFormat::kLlmC:
      return fmt::format("val loss {:.6f}", report.loss);
    case LogFormat::kText:
      break;
  }
  return fmt::format(
      "step {}: held-out loss {:.4f}{}{}{}", report.step, report.loss,
      std::isnan(report.bits_per_byte)
          ? ""
          : fmt::format(", {:.4f} bits per byte", report.bits_per_byte),
      std::isnan(report.accuracy) ? "" : fmt::format(", {:.2f} % correct", 100 * report.accuracy),
      report.sampled ? " (sampled)" : "");
}

double ZScore::update(double value) {
  values_[count_++ % kWindow] = value;
  if (count_ < kWindow) return std::numeric_limits<double>::quiet_NaN();
  constexpr auto kCount = static_cast<double>(kWindow);
  const double mean = std::accumulate(values_.begin(), values_.end(), 0.0) / kCount;
  double squares = 0;
  for (const double each : values_) squares += (each - mean) * (each - mean);
  const double deviation = std::sqrt(squares / kCount);
  // The mean of equal values has a rounding error, which must not count as a deviation.
  return deviation <= 1e-12 * std::abs(mean) ? 0 : (value - mean) / deviation;
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const int64_t total = std::llround(seconds);
  const int64_t hours = total / 3600, minutes = total / 60 % 60, rest = total % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  if (minutes > 0) return fmt::format("{}:{:02}", minutes, rest);
  return fmt::format("{} s", rest);
}

std::string format_loss(double loss) {
  constexpr double kMost = 1e9;
  return std::abs(loss) < kMost ? fmt::format("{:.4f}", loss) : fmt::format("{:.4g}", loss);
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  for (const char* unit : {"KiB", "MiB"}) {
    if (value < 1023.95) return fmt::format("{:.1f} {}", value, unit);
    value /= 1024;
  }
  return fmt::format("{:.1f} GiB", value);
}

}  // namespace lockstep::train
