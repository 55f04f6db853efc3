#include "train/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/base/log_text.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int terminal_columns(std::FILE* stream) {
  const std::string_view text = variable("COLUMNS");
  int columns = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), columns);
  if (result.ec == std::errc{} && result.ptr == text.data() + text.size() && columns > 0) {
    return columns;
  }
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

ProgressStyle ProgressStyle::of(std::FILE* stream) {
  const std::string_view terminal = variable("TERM");
  ProgressStyle style;
  style.bar = ::isatty(::fileno(stream)) == 1 && !terminal.empty() && terminal != "dumb";
  style.colour = style.bar && variable("NO_COLOR").empty();
  style.columns = terminal_columns(stream);
  return style;
}

Progress::Progress(std::FILE* stream, ProgressStyle style, ProgressOptions options)
    : stream_(stream), style_(style), options_(options) {
  style_.bar = style_.bar && options_.format == LogFormat::kText;
}

Progress::~Progress() {
  if (!bar_.empty()) print("\n");
}

void Progress::print(std::string_view text) {
  const int error = write_log(stream_, text);
  if (failure_ == 0) failure_ = error;
}

void Progress::step(const StepReport& report) {
  // The first step warms up caches, so the mean restarts with the second.
  constexpr double kWeight = 0.05;
  mean_step_ms_ = ++steps_seen_ <= 2 ? report.step_ms
                                     : (1 - kWeight) * mean_step_ms_ + kWeight * report.step_ms;
  const double loss_z = loss_z_.update(report.loss);
  const double norm_z = norm_z_.update(report.grad_norm);
  if (style_.bar) {
    const auto now = Clock::now();
    if (report.step < options_.total_steps && now < next_redraw_) return;
    next_redraw_ = now + options_.redraw_interval;
    bar_ = bar_line(report);
    print(std::string(kEraseLine) + bar_);
  } else if (is_due(report.step)) {
    print(step_line(options_.format, report,
                    {.total_steps = options_.total_steps,
                     .eta = eta(report.step),
                     .loss_z = loss_z,
                     .norm_z = norm_z}) +
          "\n");
  }
}

void Progress::evaluation(const EvaluationReport& report) {
  note(evaluation_line(options_.format, report));
}

bool Progress::is_due(int64_t step) const {
  const int64_t every = std::max<int64_t>(options_.log_every, 1);
  if (options_.format == LogFormat::kNanoGpt) return (step - 1) % every == 0;
  return step == 1 || step % every == 0 || step >= options_.total_steps;
}

void Progress::note(std::string_view line) {
  if (bar_.empty()) {
    print(std::string(line) + "\n");
  } else {
    print(fmt::format("{}{}\n{}", kEraseLine, line, bar_));
  }
}

std::string Progress::bar_line(const StepReport& report) const {
  const double fraction =
      options_.total_steps > 0
          ? std::clamp(static_cast<double>(report.step) / static_cast<double>(options_.total_steps),
                       0.0, 1.0)
          : 1.0;
  const std::string head = fmt::format("{:3.0f}% ", 100 * std::floor(fraction * 100) / 100);
  std::string tail = fmt::format(" {}/{} | ETA {} | {}", report.step, options_.total_steps,
                                 eta(report.step), measurements(report));
  // Leaves the last column free: some terminals wrap as soon as it is written.
  const int room = std::max(style_.columns - 1 - static_cast<int>(head.size()), 0);
  constexpr int kWidest = 30;
  constexpr int kNarrowest = 8;
  const int width = std::min(room - static_cast<int>(tail.size()) - 2, kWidest);
  if (width < kNarrowest)
    return (head + tail.substr(1)).substr(0, head.size() + static_cast<size_t>(room));
  const int done = static_cast<int>(fraction * width);
  return fmt::format("{}[{}{}{}{}]{}", head, style_.colour ? kGreen : "",
                     std::string(static_cast<size_t>(done), '#'), style_.colour ? kPlain : "",
                     std::string(static_cast<size_t>(width - done), '-'), tail);
}

std::string Progress::eta(int64_t step) const {
  return format_duration(mean_step_ms_ / 1000 *
                         static_cast<double>(std::max<int64_t>(options_.total_steps - step, 0)));
}

}  // namespace lockstep::train
