#include "train/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::train {
namespace {

double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string grouped(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  for (size_t at = std::min(text.find('.'), text.size()); at > 3;) text.insert(at -= 3, 1, ',');
  return (value < 0 ? "\u2212" : "") + text;
}

/// Returns ticks at `factors` times each power of ten within the interval.
std::vector<Tick> decade_ticks(double min, double max, std::vector<double> factors) {
  std::vector<Tick> ticks;
  for (double power = std::floor(std::log10(min)); power <= std::log10(max); ++power) {
    for (const double factor : factors) {
      const double value = factor * std::pow(10.0, power);
      if (value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9)) {
        ticks.push_back({value, short_number(value)});
      }
    }
  }
  return ticks;
}

}  // namespace

double Axis::position(double value) const {
  if (logarithmic) return std::log(value / min) / std::log(max / min);
  return (value / 2 - min / 2) / (max / 2 - min / 2);  // the whole interval may be no number
}

Axis linear_axis(double min, double max, int marks, double least_step) {
  if (!(max > min)) {
    const double margin = min == 0 ? 1 : std::abs(min) / 10;
    min -= margin;
    max += margin;
  }
  constexpr double kMost = std::numeric_limits<double>::max();
  min = std::max(min, -kMost);
  max = std::min(max, kMost);
  const double half = (max / 2 - min / 2) / std::max(marks, 1);
  const double each = std::min(half, kMost / 16) * 2;
  const double step = round_step(std::max(each, least_step));
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  Axis axis{min, max, false, {}};
  const double first = std::ceil(min / step - 1e-9), last = std::floor(max / step + 1e-9);
  // Counted apart: a multiple may be so large that one more is the same number.
  for (int i = 0; i <= last - first; ++i) {
    const double value = (first + i) * step;
    const bool is_long = std::abs(value) >= 1e15;
    axis.ticks.push_back({value, is_long ? short_number(value) : grouped(value, decimals)});
  }
  return axis;
}

Axis logarithmic_axis(double min, double max) {
  if (!(max > min)) max = 10 * min;
  Axis axis{min, max, true, decade_ticks(min, max, {1})};
  if (axis.ticks.size() < 3) axis.ticks = decade_ticks(min, max, {1, 2, 5});
  return axis;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e12)) return fmt::format("{:.4g}", value);
  const std::string text = fmt::format("{:.6f}", size);
  const size_t last = text.find_last_not_of('0');  // a digit or the point
  return grouped(value, static_cast<int>(last - text.find('.')));
}

}  // namespace lockstep::train
