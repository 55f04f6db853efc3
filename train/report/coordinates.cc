#include "train/report/coordinates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/check.h"

namespace lockstep::train {

namespace {

constexpr int kNameWidth = 18;
constexpr int kNumberWidth = 11;

std::string row_of_sizes(int64_t step, const std::vector<double>& sizes, double exponent) {
  std::string row = fmt::format("{:>{}}", step, kNameWidth);
  for (const double size : sizes) row += fmt::format("{:>{}.4g}", size, kNumberWidth);
  return row + fmt::format("{:>+{}.2f}\n", exponent, kNumberWidth);
}

std::string table_of(const CoordinateCheck& check, const LayerCoordinates& layer) {
  std::string table = fmt::format("{:<{}}", layer.layer, kNameWidth);
  for (const int64_t width : check.widths) table += fmt::format("{:>{}}", width, kNumberWidth);
  table += fmt::format("{:>{}}\n", "exponent", kNumberWidth);
  for (int64_t step = 0; step <= check.steps; ++step) {
    table += row_of_sizes(step, layer.sizes[static_cast<size_t>(step)],
                          check.size_exponent(layer, step));
  }
  return table + "\n";
}

std::string summary_of(const CoordinateCheck& check) {
  std::string text = fmt::format("{0:<{1}}{2:>{5}}{3:>{5}}  {4}\n", "after the last step",
                                 kNameWidth + 2, "size", "move", "verdict", kNumberWidth - 2);
  std::vector<std::string> failures;
  for (const LayerCoordinates& layer : check.layers) {
    const WidthVerdict verdict = check.verdict(layer);
    text +=
        fmt::format("{0:<{1}}{2:>+{5}.2f}{3:>+{5}.2f}  {4}\n", layer.layer, kNameWidth + 2,
                    check.size_exponent(layer, check.steps),
                    check.move_exponent(layer, check.steps), to_string(verdict), kNumberWidth - 2);
    if (verdict != WidthVerdict::kConstant) {
      failures.push_back(fmt::format("{} {}", layer.layer, to_string(verdict)));
    }
  }
  text += fmt::format(
      "\nExponents e of a fit width^e: of the size, and of the move |x - x before the first "
      "step|.\n"
      "Grows: one of them is above {0}. Shrinks: the move's is below -{0}.\n",
      check.threshold);
  return text +
         (failures.empty() ? "passed\n" : fmt::format("failed: {}\n", fmt::join(failures, ", ")));
}

/// JSON has no NaN.
nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json rows_of(const std::vector<std::vector<double>>& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<double>& row : table) {
    nlohmann::ordered_json& added = rows.emplace_back(nlohmann::ordered_json::array());
    for (const double value : row) added.push_back(finite_or_null(value));
  }
  return rows;
}

}  // namespace

std::string_view to_string(WidthVerdict verdict) {
  switch (verdict) {
    case WidthVerdict::kGrows:
      return "grows";
    case WidthVerdict::kShrinks:
      return "shrinks";
    case WidthVerdict::kNotFinite:
      return "is not finite";
    case WidthVerdict::kConstant:
      break;
  }
  return "constant";
}

double width_exponent(std::span<const int64_t> widths, std::span<const double> sizes) {
  LS_ASSERT(widths.size() == sizes.size());
  double mean_x = 0, mean_y = 0;
  const auto count = static_cast<double>(widths.size());
  for (size_t i = 0; i < widths.size(); ++i) {
    if (!(std::isfinite(sizes[i]) && sizes[i] > 0)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    mean_x += std::log(static_cast<double>(widths[i])) / count;
    mean_y += std::log(sizes[i]) / count;
  }
  double both = 0, square = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    const double x = std::log(static_cast<double>(widths[i])) - mean_x;
    both += x * (std::log(sizes[i]) - mean_y);
    square += x * x;
  }
  return both / square;
}

double CoordinateCheck::size_exponent(const LayerCoordinates& layer, int64_t step) const {
  return width_exponent(widths, layer.sizes[static_cast<size_t>(step)]);
}

double CoordinateCheck::move_exponent(const LayerCoordinates& layer, int64_t step) const {
  return width_exponent(widths, layer.moves[static_cast<size_t>(step)]);
}

WidthVerdict CoordinateCheck::verdict(const LayerCoordinates& layer) const {
  const double size = size_exponent(layer, steps), move = move_exponent(layer, steps);
  if (std::isnan(size) || std::isnan(move)) return WidthVerdict::kNotFinite;
  if (std::max(size, move) > threshold) return WidthVerdict::kGrows;
  // Sizes may shrink towards those of what is learnt, as the logits of a random classifier do.
  return move < -threshold ? WidthVerdict::kShrinks : WidthVerdict::kConstant;
}

bool CoordinateCheck::passed() const {
  return std::ranges::all_of(layers, [this](const LayerCoordinates& layer) {
    return verdict(layer) == WidthVerdict::kConstant;
  });
}

std::string coordinates_text(const CoordinateCheck& check) {
  std::string text = fmt::format("mean |activation| by step and width, over {} seed{}\n\n",
                                 check.seeds, check.seeds == 1 ? "" : "s");
  for (const LayerCoordinates& layer : check.layers) text += table_of(check, layer);
  return text + summary_of(check);
}

std::string coordinates_json(const CoordinateCheck& check) {
  nlohmann::ordered_json json = {
      {"widths", check.widths},   {"steps", check.steps},
      {"seeds", check.seeds},     {"threshold", check.threshold},
      {"passed", check.passed()}, {"layers", nlohmann::ordered_json::array()}};
  for (const LayerCoordinates& layer : check.layers) {
    json["layers"].push_back(
        {{"layer", layer.layer},
         {"sizes", rows_of(layer.sizes)},
         {"moves", rows_of(layer.moves)},
         {"size_exponent", finite_or_null(check.size_exponent(layer, check.steps))},
         {"move_exponent", finite_or_null(check.move_exponent(layer, check.steps))},
         {"verdict", to_string(check.verdict(layer))}});
  }
  return json.dump() + "\n";
}

}  // namespace lockstep::train
