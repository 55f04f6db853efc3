#include "train/report/time_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/files/lines_from_end.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/report/step_line.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;

/// Member of goodput.json after a clean end.
constexpr const char* kEnded = "ended";
constexpr std::array<const char*, kTimeUses> kSums = {
    "train_s", "data_s", "evaluation_s", "checkpoint_s", "redone_s", "start_s", "restart_s"};
constexpr std::array<const char*, kTimeUses> kUses = {
    "training", "data", "evaluation", "checkpoints", "steps done again", "start", "restart"};

double unix_time() {
  return std::chrono::duration_cast<Seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double to_microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

std::optional<double> number_in(const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_number()) return std::nullopt;
  const auto value = member->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// What the last lines of a metrics file tell.
struct LastTimes {
  std::optional<double> at, wall, starts, restarts;
  std::array<std::optional<double>, kTimeUses> used;
  bool ended = false;  ///< the last of them is that of a clean end
  /// train_s and data_s of the step's line.
  std::optional<std::pair<double, double>> at_step;

  bool complete() const {
    return at && wall && starts && restarts &&
           std::ranges::all_of(used, [](const auto& each) { return each.has_value(); });
  }
};

/// Reads one line, later ones having been read. Returns whether it is of `step` or an earlier one.
bool read_sums(std::string_view text, int64_t step, LastTimes& last) {
  Json line;
  try {
    line = parse_json(text);
  } catch (const DataError&) {
    return false;  // incomplete, by a process that was killed
  }
  if (!line.is_object()) return false;
  const auto take = [&](std::optional<double>& into, const char* name) {
    if (!into) into = number_in(line, name);
  };
  if (!last.at) last.ended = line.contains(kEnded);
  take(last.at, "at");
  take(last.wall, "wall_s");
  take(last.starts, "starts");
  take(last.restarts, "restarts");
  for (size_t i = 0; i < kTimeUses; ++i) take(last.used[i], kSums[i]);
  const std::optional<double> of = number_in(line, "step");
  if (!of || *of > static_cast<double>(step)) return false;
  const auto train = number_in(line, kSums[0]);
  const auto data = number_in(line, kSums[1]);
  if (!last.at_step && *of == static_cast<double>(step) && train && data) {
    last.at_step.emplace(*train, *data);
  }
  return true;
}

bool is_there(const std::filesystem::path& file) {
  return name_exists(file) && std::filesystem::is_regular_file(file);
}

LastTimes read_metrics_times(const std::filesystem::path& metrics, int64_t step) {
  LastTimes last;
  if (step == 0) last.at_step.emplace(0, 0);
  if (!is_there(metrics)) return last;
  LinesFromEnd lines(metrics);
  for (bool passed = false; !(passed && last.complete());) {
    const std::optional<std::string> line = lines.next();
    if (!line) break;
    passed = read_sums(*line, step, last) || passed;
  }
  return last;
}

LastTimes read_last_times(const RunDirectory& directory, int64_t step) {
  LastTimes metrics = read_metrics_times(directory.metrics(), step);
  LastTimes told;
  if (is_there(directory.goodput())) {
    (void)read_sums(read_whole_file(directory.goodput()), step, told);
  }
  if (!told.complete() || (metrics.at && *metrics.at > *told.at)) return metrics;
  told.at_step = metrics.at_step;
  return told;
}

}  // namespace

double RunTimes::other() const {
  double rest = wall;
  for (const double each : used) rest -= each;
  return std::max(0.0, rest);
}

std::string goodput_text(const RunTimes& times) {
  std::vector<std::string> parts;
  const auto add = [&](const char* title, double seconds, const std::string& more = "") {
    const double percent = 100 * seconds / times.wall;
    if (percent >= 0.05) parts.push_back(fmt::format("{} {:.1f} %{}", title, percent, more));
  };
  if (!(times.wall > 0)) return "";
  for (size_t i = 1; i < kTimeUses; ++i) {
    const bool counted = static_cast<TimeUse>(i) == TimeUse::kRestart;
    add(kUses[i], times.used[i],
        !counted              ? ""
        : times.restarts == 1 ? " (once)"
                              : fmt::format(" ({} times)", times.restarts));
  }
  add("other", times.other());
  return fmt::format(
      "{:.1f} % of {} in steps that count{}{}", 100 * times.goodput(),
      times.wall < 60 ? fmt::format("{:.1f} s", times.wall) : format_duration(times.wall),
      parts.empty() ? "" : "; ", fmt::join(parts, ", "));
}

TimeAccount::TimeAccount(const RunDirectory& directory, int64_t step, Clock::time_point begun)
    : file_(directory.goodput()), begun_(begun), last_(begun) {
  const LastTimes last = read_last_times(directory, step);
  if (last.at) {
    const double began_at = unix_time() - Seconds(Clock::now() - begun).count();
    times_.wall = last.wall.value_or(0);
    for (size_t i = 0; i < kTimeUses; ++i) times_.used[i] = last.used[i].value_or(0);
    times_.starts = static_cast<int64_t>(last.starts.value_or(1)) + 1;
    times_.restarts = static_cast<int64_t>(last.restarts.value_or(0));
    if (!last.ended) {
      const double gap = std::max(0.0, began_at - *last.at);
      times_.wall += gap;
      of(TimeUse::kRestart) += gap;
      opening_ = TimeUse::kRestart;
      ++times_.restarts;
    }
    if (last.at_step) lose_since({step, last.at_step->first, last.at_step->second});
  }
  mark(step);
  if (last.at) {
    spend_on_start();
    write(JsonLine().add("resumed_from", step));
  }
}

void TimeAccount::spend(TimeUse use) {
  const Clock::time_point now = Clock::now();
  of(use) += Seconds(now - last_).count();
  last_ = now;
}

void TimeAccount::spend_on_step(double waited_for_data, bool counts) {
  const Clock::time_point now = Clock::now();
  const double seconds = Seconds(now - last_).count();
  const double waited = std::clamp(waited_for_data, 0.0, seconds);
  last_ = now;
  of(TimeUse::kData) += counts ? waited : 0;
  of(counts ? TimeUse::kTrain : TimeUse::kRedone) += counts ? seconds - waited : seconds;
}

void TimeAccount::mark(int64_t step) {
  constexpr size_t kMost = 64;  // far more than steps back to the newest checkpoint
  std::erase_if(marks_, [&](const Mark& mark) { return mark.step >= step; });
  if (marks_.size() == kMost) marks_.erase(marks_.begin());
  marks_.push_back({step, of(TimeUse::kTrain), of(TimeUse::kData)});
  all_are_due_ = true;
}

void TimeAccount::go_back(int64_t step) {
  const auto found = std::ranges::find(marks_, step, &Mark::step);
  if (found != marks_.end()) lose_since(*found);
}

void TimeAccount::lose_since(const Mark& mark) {
  for (const auto& [use, before] :
       {std::pair(TimeUse::kTrain, mark.train), {TimeUse::kData, mark.data}}) {
    const double lost = std::max(0.0, of(use) - before);
    of(use) -= lost;
    of(TimeUse::kRedone) += lost;
  }
}

RunTimes TimeAccount::so_far() const {
  RunTimes times = times_;
  times.wall += Seconds(Clock::now() - begun_).count();
  return times;
}

void TimeAccount::end(int64_t step, std::string_view how) {
  write(JsonLine().add("steps", step).add(kEnded, how));
}

void TimeAccount::write(JsonLine line) {
  add_to(line, true);
  write_text(file_, line.text() + "\n");
}

void TimeAccount::add_to(JsonLine& line) { add_to(line, std::exchange(all_are_due_, false)); }

void TimeAccount::add_to(JsonLine& line, bool all) {
  const RunTimes times = so_far();
  line.add("at", std::round(unix_time() * 1e3) / 1e3).add("wall_s", to_microseconds(times.wall));
  for (size_t i = 0; i < kTimeUses; ++i) {
    const auto use = static_cast<TimeUse>(i);
    const bool always = all || use == TimeUse::kTrain || use == TimeUse::kData;
    if (!always && times.used[i] == written_[i]) continue;
    written_[i] = times.used[i];
    line.add(kSums[i], to_microseconds(times.used[i]));
  }
  if (all) {
    line.add("other_s", to_microseconds(times.other()))
        .add("starts", times.starts)
        .add("restarts", times.restarts);
  }
  line.add("goodput", std::round(times.goodput() * 1e4) / 1e4);
}

}  // namespace lockstep::train
