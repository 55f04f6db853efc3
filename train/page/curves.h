#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/page/run_record.h"

/// The curves of a page: which quantities there are, and how their values are written.
namespace lockstep::train {

/// How a quantity's values are written.
enum class Scale { kPlain, kBytes, kPercent };

/// A line of a chart.
struct ChartLine {
  const char* member;  ///< of metrics.jsonl
  const char* label;
  bool sparse = false;  ///< few values, each drawn with a mark
};

/// A chart of quantities with one unit.
struct ChartKind {
  const char* title;
  const char* unit;  ///< of Scale::kPlain; may be empty
  Scale scale;
  std::vector<ChartLine> lines;
};

/// The charts in their order on the page.
std::span<const ChartKind> chart_kinds();

/// "2.2590", "82.8 MiB", "31.2 %", with the unit.
std::string value_text(const ChartKind& kind, double value);

/// The runs' curves as one JSON object for the page's program: "colours" of lines; "charts" as
/// chart_kinds, those of which a run has values; "runs" with name, colour, tokens_per_step, events
/// and, by member, "series": the number of points, their steps as base64 of LEB128 differences, and
/// their values as base64 of little-endian f32.
std::string curves_json(std::span<const RunRecord> runs);

/// An HTML table of the first, smallest, largest and last value of each line of each run.
std::string extremes_table(std::span<const RunRecord> runs);

}  // namespace lockstep::train
