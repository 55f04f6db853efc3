#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/report/axis.h"
#include "train/report/metrics_history.h"

namespace lockstep::train {

/// A named line of a chart.
struct Curve {
  struct Point {
    double x = 0;
    double y = 0;
  };
  std::string name;
  int group = 0;              ///< curves of one group share a colour
  bool sparse = false;        ///< few points that are marked one by one
  std::vector<Point> points;  ///< x rises; every number is finite
};

/// The training loss of a run and, where it was evaluated, its validation loss: named "NAME" and
/// "NAME validation". Of a step that the run holds twice the later record counts; values that are
/// not finite are left out.
std::vector<Curve> loss_curves(const std::string& name, int group,
                               std::span<const MetricsRecord> records);

/// Several points near one place on the x axis.
struct Bucket {
  double x = 0;  ///< mean
  double mean = 0;
  double min = 0;
  double max = 0;
};

/// `curve` with the points that fall into the same of `count` equal parts of `axis` taken together;
/// parts without points are left out.
std::vector<Bucket> buckets(const Curve& curve, const Axis& axis, int count);

/// The axes of a chart. `curves` must hold a point.
struct Axes {
  Axis x;
  Axis y;
};
Axes axes_of(std::span<const Curve> curves, bool log_x, int x_marks, int y_marks);

}  // namespace lockstep::train
