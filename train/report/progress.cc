#include "train/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/log_text.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[0m";
constexpr std::string_view kSeparator = " | ";

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The value of COLUMNS; 0 if it is no positive number.
int wanted_columns() {
  const std::string_view text = variable("COLUMNS");
  int columns = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool is_number = result.ec == std::errc{} && result.ptr == text.data() + text.size();
  return is_number ? std::max(columns, 0) : 0;
}

int terminal_columns(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

/// What the bar's line shows after the step, in the order of display.
struct Part {
  std::string text;
  int rank = 0;  ///< parts of higher ranks are left out first
};

/// Leaves out parts, the last of the highest rank first, until those left fit into `room` columns
/// with " | " between them.
std::vector<Part> fitting(std::vector<Part> parts, size_t room) {
  const auto width = [&] {
    size_t sum = 0;
    for (const Part& part : parts) sum += part.text.size() + (sum == 0 ? 0 : kSeparator.size());
    return sum;
  };
  while (!parts.empty() && width() > room) {
    // The last of the greatest: max_element returns the first, so the range is reversed.
    const auto worst = std::ranges::max_element(parts.rbegin(), parts.rend(), {}, &Part::rank);
    parts.erase(std::next(worst).base());
  }
  return parts;
}

}  // namespace

ProgressStyle ProgressStyle::of(std::FILE* stream) {
  const std::string_view terminal = variable("TERM");
  ProgressStyle style;
  style.bar = ::isatty(::fileno(stream)) == 1 && !terminal.empty() && terminal != "dumb";
  style.colour = style.bar && variable("NO_COLOR").empty();
  const int wanted = wanted_columns();
  style.columns = wanted > 0 ? wanted : terminal_columns(stream);
  style.resizes = style.bar && wanted == 0;
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
    last_ = report;
    if (report.step < options_.total_steps && now < next_redraw_) return;
    next_redraw_ = now + options_.redraw_interval;
    draw();
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
    print(fmt::format("{}{}\n", erase(), line));
    bar_width_ = 0;
    draw();
  }
}

void Progress::draw() {
  if (style_.resizes) style_.columns = terminal_columns(stream_);
  const std::string erased = erase();
  bar_ = bar_line(last_);
  bar_width_ = bar_.size() -
               (style_.colour && bar_.find('[') != bar_.npos ? kGreen.size() + kPlain.size() : 0);
  print(erased + bar_);
}

/// The sequence that removes the bar. A terminal that became narrower has wrapped it: the lines
/// above hold the rest.
std::string Progress::erase() const {
  const auto columns = static_cast<size_t>(std::max(style_.columns, 1));
  const size_t above = bar_width_ == 0 ? 0 : (bar_width_ - 1) / columns;
  if (above == 0) return std::string(kEraseLine);
  return fmt::format("\x1b[{}A\r\x1b[J", above);
}

std::string Progress::bar_line(const StepReport& report) const {
  constexpr size_t kWidest = 30;
  constexpr size_t kNarrowest = 8;
  const double fraction =
      options_.total_steps > 0
          ? std::clamp(static_cast<double>(report.step) / static_cast<double>(options_.total_steps),
                       0.0, 1.0)
          : 1.0;
  // Leaves the last column free: some terminals wrap as soon as it is written.
  const auto room = static_cast<size_t>(std::max(style_.columns - 1, 0));
  const std::string head = fmt::format("{:3.0f}%", 100 * std::floor(fraction * 100) / 100);
  std::vector<Part> parts = {{fmt::format("{}/{}", report.step, options_.total_steps), 0}};
  if (report.skipped) parts.push_back({"skipped", 2});
  parts.push_back({fmt::format("loss {:.4f}", report.loss), 1});
  parts.push_back({fmt::format("{:.0f} tok/s", report.tokens_per_s), 4});
  parts.push_back({"ETA " + eta(report.step), 3});
  const std::vector<Part> needed = parts;
  int rank = 5;
  for (std::string& text : details(report)) parts.push_back({std::move(text), rank++});

  const auto joined = [](const std::vector<Part>& shown) {
    std::string text;
    for (const Part& part : shown) {
      text += fmt::format("{}{}", text.empty() ? "" : kSeparator, part.text);
    }
    return text;
  };
  // The bar comes before the details: it is left out only where what is needed leaves no room.
  const size_t frame = head.size() + 4;  // " [" and "] "
  const size_t least = joined(needed).size();
  if (least + frame + kNarrowest > room) {
    const std::string with_head = head + " " + joined(needed);
    return with_head.size() <= room ? with_head : joined(fitting(needed, room));
  }
  const size_t wanted = std::min(kWidest, room - frame - least);
  const std::string tail = joined(fitting(std::move(parts), room - frame - wanted));
  const auto done = static_cast<size_t>(fraction * static_cast<double>(wanted));
  return fmt::format("{} [{}{}{}{}] {}", head, style_.colour ? kGreen : "", std::string(done, '#'),
                     style_.colour ? kPlain : "", std::string(wanted - done, '-'), tail);
}

std::string Progress::eta(int64_t step) const {
  return format_duration(mean_step_ms_ / 1000 *
                         static_cast<double>(std::max<int64_t>(options_.total_steps - step, 0)));
}

}  // namespace lockstep::train
