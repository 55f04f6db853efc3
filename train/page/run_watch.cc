#include "train/page/run_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/digits.h"
#include "core/base/files/regular_file.h"
#include "core/base/terminal_text.h"
#include "train/page/curves.h"
#include "train/report/braille_chart.h"
#include "train/report/last_start.h"
#include "train/report/run_directory.h"
#include "train/report/run_lock.h"

namespace lockstep::train {
namespace {

/// Points of a curve: more than a terminal has columns for.
constexpr size_t kWatchedPoints = 4096;
constexpr uint64_t kMostConfigBytes = uint64_t{1} << 20;

/// The bytes [from, to) of a file; fewer where it ends before, none where it cannot be read.
std::string text_between(const std::filesystem::path& file, uint64_t from, uint64_t to) {
  try {
    RegularFile source(file, kMostTextBytes);
    if (::lseek(source.descriptor(), static_cast<off_t>(from), SEEK_SET) < 0) return "";
    std::string text(std::min(to, std::max(source.bytes(), from)) - from, '\0');
    text.resize(source.read(std::as_writable_bytes(std::span(text))));
    return text;
  } catch (const FileError&) {
    return "";
  }
}

int64_t steps_wanted(const RunDirectory& directory) {
  for (const ConfigValue& value :
       read_config_values(text_between(directory.config(), 0, kMostConfigBytes))) {
    if (value.path != "train.steps") continue;
    int64_t steps = 0;
    std::from_chars(value.value.data(), value.value.data() + value.value.size(), steps);
    return steps;
  }
  return 0;
}

void add_curve(std::vector<Curve>& curves, const RunRecord& record, const char* member,
               const char* metric, bool sparse) {
  const StepSeries* series = record.find(member);
  if (series == nullptr) return;
  Curve curve{.name = record.name, .group = 0, .sparse = sparse, .points = {}, .metric = metric};
  for (const StepSeries::Point& point : series->points()) {
    curve.points.push_back({static_cast<double>(point.step), point.value});
  }
  curves.push_back(std::move(curve));
}

}  // namespace

RunWatch::RunWatch(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code failed;
  const bool is_other =
      std::filesystem::exists(path_, failed) && !std::filesystem::is_directory(path_, failed);
  LS_CHECK(!is_other, DataError, "[watch] {} is no folder: expected a run directory.",
           path_.string());
  begin_again();
}

void RunWatch::begin_again() {
  record_ = std::make_unique<RunRecord>();
  std::filesystem::path whole = std::filesystem::absolute(path_).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  record_->name = whole.filename().string();
  record_->path = path_;
  RunRecordOptions options;
  options.points = kWatchedPoints;
  reader_ = std::make_unique<MetricsReader>(*record_, options);
  offset_ = 0;
  lines_ = 0;
  last_line_.clear();
  in_long_line_ = false;
}

bool RunWatch::goes_on(std::uintmax_t bytes) const {
  if (bytes < offset_) return false;
  return text_between(path_ / "metrics.jsonl", offset_ - last_line_.size(), offset_) == last_line_;
}

void RunWatch::read_new() {
  // In pieces: the file of a long run need not fit into memory.
  constexpr uint64_t kPiece = uint64_t{16} << 20;
  constexpr size_t kKnownAgain = 4096;
  for (uint64_t before = offset_ + 1; before != offset_;) {
    before = offset_;
    const std::string text = text_between(path_ / "metrics.jsonl", offset_, offset_ + kPiece);
    read_lines(text);
    if (offset_ != before || text.size() < kPiece) continue;
    // A line as long as that is no step's. What follows it is.
    in_long_line_ = true;
    offset_ += text.size();
    last_line_ = text.substr(text.size() - kKnownAgain);
  }
}

void RunWatch::read_lines(const std::string& text) {
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    last_line_ = text.substr(begin, end + 1 - begin);
    const bool is_rest = std::exchange(in_long_line_, false);
    reader_->read(is_rest ? "" : std::string_view(text).substr(begin, end - begin), ++lines_);
    offset_ += last_line_.size();
  }
}

std::optional<RunDirectory> RunWatch::directory() const {
  if (!RunDirectory::is_run(path_)) return std::nullopt;
  try {
    return RunDirectory::open(path_);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

void RunWatch::look() {
  const std::optional<RunDirectory> run = directory();
  total_steps_ = run ? steps_wanted(*run) : 0;
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path_ / "metrics.jsonl", failed);
  if (failed) return begin_again();
  if (!goes_on(bytes)) begin_again();
  read_new();
}

bool RunWatch::finished() const {
  std::error_code failed;
  return total_steps_ > 0 && record_->steps >= total_steps_ &&
         std::filesystem::exists(path_ / "model.safetensors", failed);
}

std::string RunWatch::state_line() const {
  const std::optional<RunDirectory> run = directory();
  if (!run) {
    return fmt::format("waiting for a run in {}\n", path_.string());
  }
  std::string line = fmt::format("step {}", grouped(record_->steps));
  if (total_steps_ > 0) {
    line += fmt::format(
        "/{} ({:.1f} %)", grouped(total_steps_),
        100.0 * static_cast<double>(record_->steps) / static_cast<double>(total_steps_));
  }
  const StepSeries* step_ms = record_->find("step_ms");
  if (finished()) {
    line += ", finished";
  } else if (const auto holder = RunLock::holder(*run)) {
    line += ", training";
    if (step_ms != nullptr && total_steps_ > record_->steps) {
      // The last step stands for those to come; the median would need all of them.
      line += fmt::format(", {} left at the last step's speed",
                          format_duration(step_ms->last().value / 1e3 *
                                          static_cast<double>(total_steps_ - record_->steps)));
    }
  } else {
    line += ", nobody on this machine trains it now";
  }
  return line + "\n";
}

std::string RunWatch::numbers() const {
  std::string text;
  for (const ChartKind& kind : chart_kinds()) {
    for (const ChartLine& line : kind.lines) {
      const StepSeries* series = record_->find(line.member);
      if (series == nullptr) continue;
      const std::string name = kind.lines.size() == 1
                                   ? std::string(kind.title)
                                   : fmt::format("{}, {}", kind.title, line.label);
      text += fmt::format(
          "{:<30}  {:>16}   from {} to {}\n", name, value_text(kind, series->last().value),
          value_text(kind, series->smallest().value), value_text(kind, series->largest().value));
    }
  }
  return text;
}

std::string RunWatch::problem_lines() const {
  std::string text;
  for (const std::string& problem : reader_->problems()) text += "problem  " + problem + "\n";
  return text;
}

std::string RunWatch::ranks_line() const {
  std::string text;
  if (const std::optional<LastStart> start = read_last_start(path_)) {
    text += fmt::format("ranks  {}{}\n", start->ranks,
                        start->ended_well() ? fmt::format(", {}", start->end) : "");
  }
  if (record_->rank_times) text += ranks_text(*record_->rank_times);
  if (!record_->rank_leaves.empty()) {
    constexpr size_t kMost = 12;  // what a line has room for
    const std::vector<int64_t>& leaves = record_->rank_leaves;
    text += fmt::format("leaves  {}{} of a step, by rank\n",
                        fmt::join(std::span(leaves).first(std::min(leaves.size(), kMost)), ", "),
                        leaves.size() > kMost ? ", ..." : "");
  }
  const auto is_failure = [](const RunEvent& event) {
    return event.kind == "restart" || event.kind == "rollback" || event.kind == "left out";
  };
  const auto failures = std::ranges::count_if(record_->events, is_failure);
  if (failures > 0) {
    const RunEvent& last =
        *std::find_if(record_->events.rbegin(), record_->events.rend(), is_failure);
    text += fmt::format(
        "events  restarts, rollbacks and steps left out: {}; the last: {} after step {}, {}\n",
        failures, last.kind, grouped(last.step), last.text);
  }
  return terminal_text(text);
}

std::string RunWatch::text(const ProgressStyle& style, int lines) const {
  // Of a braille chart, besides its rows.
  constexpr int64_t kAxisLines = 2, kLeastRows = 4, kMostRows = 16;
  std::string text = terminal_text(record_->name) + ": " + terminal_text(state_line());
  std::vector<Curve> curves;
  add_curve(curves, *record_, "loss", "train", false);
  add_curve(curves, *record_, "val_loss", "eval", true);
  // The numbers last: where a terminal is short, they are also on the run's page.
  const std::string below = problem_lines() + ranks_line() + numbers();
  if (!curves.empty()) {
    const int64_t others = 1 + kAxisLines + std::ssize(curves) + std::ranges::count(below, '\n');
    const int64_t rows = std::clamp(lines - others, kLeastRows, kMostRows);
    text += braille_chart(curves, {.columns = style.columns,
                                   .rows = static_cast<int>(rows),
                                   .colour = style.colour,
                                   .log_x = false});
  }
  text += below;
  size_t end = 0;
  for (int line = 0; line < lines && end < text.size(); ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

}  // namespace lockstep::train
