#include "train/page/metrics_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parse_json.h"
#include "train/page/curves.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;

/// Members of which there is a curve, and the time over which curves are drawn. Others are not
/// kept: a file may have any number of them.
const std::set<std::string, std::less<>>& kept_members() {
  static const auto* const kMembers = [] {
    auto* members = new std::set<std::string, std::less<>>{"wall_s"};
    for (const ChartKind& kind : chart_kinds()) {
      for (const ChartLine& line : kind.lines) members->insert(line.member);
    }
    return members;
  }();
  return *kMembers;
}

/// A number as JsonLine writes it.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

double number_or(const Json& line, const char* name, double otherwise) {
  const auto member = line.find(name);
  return member == line.end() ? otherwise : number_of(*member).value_or(otherwise);
}

/// The step that a member tells.
std::optional<int64_t> step_of(const Json& line, const char* name) {
  const auto member = line.find(name);
  if (member == line.end() || !member->is_number_integer()) return std::nullopt;
  const auto step = member->get<int64_t>();
  return is_step(step) ? std::optional(step) : std::nullopt;
}

std::string text_of(const Json& line, const char* name) {
  const auto member = line.find(name);
  return member != line.end() && member->is_string() ? member->get<std::string>() : "";
}

/// The numbers of a list; nothing if it has others or is not there.
std::vector<double> numbers_of(const Json& line, const char* name) {
  std::vector<double> numbers;
  const auto member = line.find(name);
  if (member == line.end() || !member->is_array()) return numbers;
  for (const Json& each : *member) {
    const double value = number_of(each).value_or(std::numeric_limits<double>::quiet_NaN());
    if (!std::isfinite(value)) return {};
    numbers.push_back(value);
  }
  return numbers;
}

/// What a line tells of the ranks; nothing where its lists do not fit each other.
std::optional<RankComparison> rank_times_of(const Json& line) {
  const std::vector<double> compute = numbers_of(line, "rank_compute_ms");
  const std::vector<double> data = numbers_of(line, "rank_data_wait_ms");
  const std::vector<double> exposed = numbers_of(line, "rank_exposed_comm_ms");
  const std::vector<double> core = numbers_of(line, "rank_core_wait_ms");
  const std::vector<double> numbers = numbers_of(line, "rank_numbers");
  const size_t ranks = compute.size();
  const auto fits = [&](const std::vector<double>& list) {
    return list.empty() || list.size() == ranks;
  };
  if (ranks == 0 || data.size() != ranks || exposed.size() != ranks || !fits(core) ||
      !fits(numbers)) {
    return std::nullopt;
  }
  constexpr double kMost = 1e9;  // ranks and steps
  RankComparison comparison;
  comparison.steps = static_cast<int64_t>(std::clamp(number_or(line, "rank_steps", 0), 0.0, kMost));
  for (size_t i = 0; i < ranks; ++i) {
    const double number = numbers.empty() ? static_cast<double>(i) : numbers[i];
    if (number < 0 || number > kMost) return std::nullopt;
    comparison.ranks.push_back({.rank = static_cast<int>(number),
                                .compute_ms = compute[i],
                                .data_ms = data[i],
                                .exposed_ms = exposed[i],
                                .core_ms = core.empty() ? -1 : core[i]});
  }
  return comparison;
}

/// Leaves by rank; nothing where they are no counts.
std::vector<int64_t> rank_leaves_of(const Json& line) {
  constexpr double kMost = 1e9;
  std::vector<int64_t> leaves;
  for (const double count : numbers_of(line, "rank_leaves")) {
    if (count < 0 || count > kMost || count != std::floor(count)) return {};
    leaves.push_back(static_cast<int64_t>(count));
  }
  return leaves;
}

Json parsed(std::string_view line) {
  // A power cut leaves zeros of lines that were not on the disk.
  line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
  try {
    return parse_ordered_json(line);
  } catch (const DataError&) {
    return Json(Json::value_t::discarded);
  }
}

}  // namespace

void add_event(RunRecord& record, const RunRecordOptions& options, RunEvent event) {
  if (record.events.size() < options.events) {
    record.events.push_back(std::move(event));
  } else {
    ++record.events_left_out;
  }
}

void MetricsReader::add_event(int64_t step, const char* kind, std::string text) {
  train::add_event(record_, options_, {step, kind, std::move(text)});
}

void MetricsReader::go_back(int64_t step) {
  for (auto& [member, series] : record_.series) series.drop_after(step);
  record_.steps = std::min(record_.steps, step);
}

void MetricsReader::read(std::string_view text, int64_t number) {
  const Json line = parsed(text);
  if (!line.is_object()) {
    if (unreadable_++ == 0) first_unreadable_ = number;
    return;
  }
  if (const std::optional<int64_t> back = step_of(line, "rollback_to")) {
    add_event(*back, "rollback", fmt::format("from step {}", record_.steps));
    go_back(*back);
  }
  if (line.contains("log_lost")) {
    add_event(record_.steps, "warning", "messages were lost: " + text_of(line, "log_lost"));
  }
  const std::optional<int64_t> told = step_of(line, "step");
  if (!told) return;
  const int64_t step = *told;
  const int64_t before = std::exchange(record_.steps, step);
  if (step <= before) go_back(step - 1);
  record_.steps = step;

  for (const auto& [name, value] : line.items()) {
    if (!kept_members().contains(name)) continue;
    const std::optional<double> number_of_step = number_of(value);
    if (!number_of_step) continue;
    record_.series.try_emplace(name, options_.points).first->second.add(step, *number_of_step);
    if (name == "loss" && !std::isfinite(*number_of_step) && not_finite_++ == 0) {
      first_not_finite_ = step;
    }
  }
  if (std::optional<RankComparison> ranks = rank_times_of(line)) {
    record_.rank_times = std::move(ranks);
  }
  if (std::vector<int64_t> leaves = rank_leaves_of(line); !leaves.empty()) {
    add_event(step, "deal", fmt::format("leaves by rank: {}", fmt::join(leaves, ", ")));
    record_.rank_leaves = std::move(leaves);
  }
  // Runs of versions without an account of time: the steps' own.
  const double ms = number_or(line, "step_ms", 0);
  step_seconds_ += std::isfinite(ms) ? ms / 1e3 : 0;
  if (!line.contains("wall_s")) {
    record_.series.try_emplace("wall_s", options_.points).first->second.add(step, step_seconds_);
  }
  const double tokens = std::round(number_or(line, "tokens_per_s", 0) * ms / 1e3);
  if (record_.tokens_per_step <= 0 && tokens > 0 && tokens < 1e12) record_.tokens_per_step = tokens;

  if (line.contains("skipped")) {
    std::string reason = text_of(line, "non_finite");
    if (reason.empty()) reason = text_of(line, "spike");
    add_event(step, "left out", reason.empty() ? "overflow under the loss scale" : reason);
  } else if (line.contains("spike")) {
    add_event(step, "spike", text_of(line, "spike"));
  }
  if (line.contains("audit")) add_event(step, "audit", text_of(line, "audit"));
  const double starts = number_or(line, "starts", 0);
  const double restarts = number_or(line, "restarts", 0);
  const double checkpoints = number_or(line, "checkpoint_s", checkpoint_seconds_);
  if (starts_ > 0 && starts > starts_) {
    add_event(step - 1, restarts > restarts_ ? "restart" : "resume",
              fmt::format("start {:.0f} of the run{}", starts,
                          step > 1 ? ", from the checkpoint of this step" : ""));
  } else if (starts_ > 0 && checkpoints > checkpoint_seconds_) {
    add_event(before, "checkpoint",
              fmt::format("training stood still for {:.3f} s", checkpoints - checkpoint_seconds_));
  }
  starts_ = std::max(starts, starts_);
  restarts_ = std::max(restarts, restarts_);
  checkpoint_seconds_ = checkpoints;
}

std::vector<std::string> MetricsReader::problems() const {
  std::vector<std::string> problems;
  if (unreadable_ > 0) {
    problems.push_back(fmt::format("metrics.jsonl: {} {} no JSON object, the first is line {}.",
                                   unreadable_, unreadable_ == 1 ? "line is" : "lines are",
                                   first_unreadable_));
  }
  if (not_finite_ > 0) {
    problems.push_back(
        fmt::format("The loss of {} {} is not finite, the first of step {}; curves leave them out.",
                    not_finite_, not_finite_ == 1 ? "step" : "steps", first_not_finite_));
  } else if (record_.steps > 0 && record_.find("loss") == nullptr) {
    problems.emplace_back(
        "metrics.jsonl has steps without a loss: another version of Lockstep may have written it.");
  }
  return problems;
}

void MetricsReader::finish() {
  for (std::string& problem : problems()) record_.missing.push_back(std::move(problem));
}

}  // namespace lockstep::train
