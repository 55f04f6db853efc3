#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/report/axis.h"
#include "train/report/metrics_history.h"

namespace lockstep::train {

/// A named line of a chart. A `sparse` curve is drawn as a broken line.
struct Curve {
  struct Point {
    double x = 0;
    double y = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::string name;           ///< name of the run
  int group = 0;              ///< curves of one group share a colour
  bool sparse = false;        ///< few points, each drawn with a mark
  std::vector<Point> points;  ///< x rises; every number is finite
  std::string metric = {};    ///< which line of the run: "train" or "eval"; may be empty

  /// What a legend calls it: "RUN train".
  std::string label() const { return metric.empty() ? name : name + " " + metric; }
};

/// Returns the training loss of a run and, if it was evaluated, its validation loss, labelled
/// "NAME train" and "NAME eval". If the run holds a step twice, the later record is used;
/// non-finite values are left out.
std::vector<Curve> loss_curves(const std::string& name, int group,
                               std::span<const MetricsRecord> records);

/// The first curve before `index` that has exactly its points, so that one hides the other.
std::optional<size_t> same_as(std::span<const Curve> curves, size_t index);

/// Summary of the points in one interval of the x axis.
struct Bucket {
  double x = 0;  ///< mean
  double mean = 0;
  double min = 0;
  double max = 0;
};

/// Divides `axis` into `count` equal intervals and summarizes the points of `curve` in each;
/// intervals without points are left out.
std::vector<Bucket> buckets(const Curve& curve, const Axis& axis, int count);

/// The axes of a chart. `curves` must hold at least one point.
struct Axes {
  Axis x;
  Axis y;
};
Axes axes_of(std::span<const Curve> curves, bool log_x, int x_marks, int y_marks);

}  // namespace lockstep::train
