#include "train/page/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/digits.h"
#include "train/page/html.h"
#include "train/report/step_line.h"
#include "train/report/svg_style.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;

const char* name(Scale scale) {
  switch (scale) {
    case Scale::kBytes:
      return "bytes";
    case Scale::kPercent:
      return "percent";
    case Scale::kPlain:
      break;
  }
  return "plain";
}

/// Unsigned LEB128: seven bits a byte, the lowest first.
void put_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

void put_f32(std::string& bytes, double value) {
  static_assert(std::endian::native == std::endian::little, "values are little-endian");
  constexpr double kMost = std::numeric_limits<float>::max();
  const auto single = static_cast<float>(std::clamp(value, -kMost, kMost));
  char raw[sizeof(single)];
  std::memcpy(raw, &single, sizeof(single));
  bytes.append(raw, sizeof(raw));
}

Json series_json(const StepSeries& series) {
  const std::vector<StepSeries::Point> points = series.points();
  std::string steps, values;
  int64_t before = 0;
  for (const StepSeries::Point& point : points) {
    put_varint(steps, static_cast<uint64_t>(std::max<int64_t>(0, point.step - before)));
    before = point.step;
    put_f32(values, point.value);
  }
  return {
      {"count", points.size()}, {"steps", html::base64(steps)}, {"values", html::base64(values)}};
}

Json chart_json(const ChartKind& kind, std::span<const RunRecord> runs) {
  Json lines = Json::array();
  for (const ChartLine& line : kind.lines) {
    const bool is_there = std::ranges::any_of(
        runs, [&](const RunRecord& run) { return run.find(line.member) != nullptr; });
    if (!is_there) continue;
    lines.push_back({{"member", line.member}, {"label", line.label}, {"sparse", line.sparse}});
  }
  return {{"title", kind.title},
          {"unit", kind.unit},
          {"scale", name(kind.scale)},
          {"lines", std::move(lines)}};
}

Json run_json(const RunRecord& run, size_t number, const Json& charts) {
  Json series = Json::object();
  const auto add = [&](const std::string& member) {
    if (const StepSeries* found = run.find(member)) series[member] = series_json(*found);
  };
  for (const Json& chart : charts) {
    for (const Json& line : chart["lines"]) add(line["member"].get<std::string>());
  }
  add("wall_s");
  Json events = Json::array();
  for (const RunEvent& event : run.events) {
    events.push_back({{"step", event.step}, {"kind", event.kind}, {"text", event.text}});
  }
  return {{"name", run.name},
          {"colour", kSvgColours[number % kSvgColours.size()]},
          {"tokens_per_step", run.tokens_per_step},
          {"events", std::move(events)},
          {"series", std::move(series)}};
}

}  // namespace

std::span<const ChartKind> chart_kinds() {
  static const std::vector<ChartKind> kKinds = {
      {"Loss",
       "nats",
       Scale::kPlain,
       {{"loss", "training"}, {"val_loss", "held out", /*sparse=*/true}}},
      {"Bits per byte, held out", "", Scale::kPlain, {{"val_bits_per_byte", "held out", true}}},
      {"Accuracy, held out", "", Scale::kPercent, {{"val_accuracy", "held out", true}}},
      {"Gradient norm", "", Scale::kPlain, {{"grad_norm", "gradient norm"}}},
      {"Learning rate", "", Scale::kPlain, {{"lr", "learning rate"}}},
      {"Tokens per second", "", Scale::kPlain, {{"tokens_per_s", "tokens/s"}}},
      {"Model FLOP utilisation", "", Scale::kPercent, {{"mfu", "MFU"}}},
      {"Step time", "ms", Scale::kPlain, {{"step_ms", "step"}}},
      {"Waiting",
       "ms",
       Scale::kPlain,
       {{"exposed_comm_ms", "exposed communication"}, {"data_wait_ms", "data"}}},
      {"Peak memory", "", Scale::kBytes, {{"memory_peak_bytes", "memory"}}},
      {"Sent per step", "", Scale::kBytes, {{"sent_bytes", "sent"}}},
      {"Loss scale", "", Scale::kPlain, {{"loss_scale", "loss scale"}}},
      {"Goodput", "", Scale::kPercent, {{"goodput", "goodput"}}},
  };
  return kKinds;
}

std::string value_text(const ChartKind& kind, double value) {
  switch (kind.scale) {
    case Scale::kBytes:
      return format_bytes(static_cast<uint64_t>(std::clamp(value, 0.0, 1e18)));
    case Scale::kPercent:
      return fmt::format("{:.1f} %", 100 * value);
    case Scale::kPlain:
      break;
  }
  const std::string number = std::abs(value) >= 1e3 && std::abs(value) < 1e15
                                 ? grouped(std::llround(value))
                                 : fmt::format("{:.5g}", value);
  return *kind.unit == 0 ? number : fmt::format("{} {}", number, kind.unit);
}

std::string curves_json(std::span<const RunRecord> runs) {
  Json charts = Json::array();
  for (const ChartKind& kind : chart_kinds()) {
    Json chart = chart_json(kind, runs);
    if (!chart["lines"].empty()) charts.push_back(std::move(chart));
  }
  Json records = Json::array();
  for (size_t i = 0; i < runs.size(); ++i) records.push_back(run_json(runs[i], i, charts));
  const Json json = {
      {"colours", kSvgColours}, {"charts", std::move(charts)}, {"runs", std::move(records)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string extremes_table(std::span<const RunRecord> runs) {
  html::Table table{.caption = "First, smallest, largest and last value of each curve",
                    .head = {"Curve", "First", "Smallest", "Largest", "Last"}};
  if (runs.size() > 1) table.head.insert(table.head.begin() + 1, "Run");
  for (const ChartKind& kind : chart_kinds()) {
    const auto told = [&](const StepSeries::Point& point) {
      return fmt::format("{} (step {})", value_text(kind, point.value), grouped(point.step));
    };
    for (const ChartLine& line : kind.lines) {
      for (const RunRecord& run : runs) {
        const StepSeries* series = run.find(line.member);
        if (series == nullptr) continue;
        std::vector<std::string> row = {kind.lines.size() == 1
                                            ? std::string(kind.title)
                                            : fmt::format("{}, {}", kind.title, line.label)};
        if (runs.size() > 1) row.push_back(run.name);
        for (const StepSeries::Point& point :
             {series->first(), series->smallest(), series->largest(), series->last()}) {
          row.push_back(told(point));
        }
        table.rows.push_back(std::move(row));
      }
    }
  }
  return html::table(table);
}

}  // namespace lockstep::train
