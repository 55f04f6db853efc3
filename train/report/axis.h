#pragma once

#include <string>
#include <vector>

namespace lockstep::train {

/// A mark on an axis.
struct Tick {
  double value = 0;
  std::string label;
};

/// One axis of a chart: the interval it shows and its marks.
struct Axis {
  double min = 0;
  double max = 1;
  bool logarithmic = false;
  std::vector<Tick> ticks;

  /// Relative position of `value`: 0 at `min`, 1 at `max`.
  double position(double value) const;
};

/// A linear axis over [min, max], marked at multiples of a round step (1, 2 or 5 times a power of
/// ten, at least `least_step`) of which about `marks` fit, all with the same number of decimals. An
/// empty interval is widened around its value.
Axis linear_axis(double min, double max, int marks, double least_step = 0);

/// A logarithmic axis over exactly [min, max], 0 < min, marked at powers of ten, and at 2 and 5
/// times them where fewer than three powers would show.
Axis logarithmic_axis(double min, double max);

/// Formats `value` as "12,500", "0.05", "1e-07": digits in groups of three, no trailing zeroes.
std::string short_number(double value);

}  // namespace lockstep::train
