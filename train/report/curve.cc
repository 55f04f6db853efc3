#include "train/report/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace lockstep::train {
namespace {

void put(std::map<int64_t, double>& values, int64_t step, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) values[step] = *value;
}

Curve curve(const std::string& name, const char* metric, int group, bool sparse,
            const std::map<int64_t, double>& values) {
  Curve result{name, group, sparse, {}, metric};
  for (const auto& [step, value] : values) {
    result.points.push_back({static_cast<double>(step), value});
  }
  return result;
}

}  // namespace

std::vector<Curve> loss_curves(const std::string& name, int group,
                               std::span<const MetricsRecord> records) {
  std::map<int64_t, double> training;
  std::map<int64_t, double> validation;
  for (const MetricsRecord& record : records) {
    put(training, record.step, record.loss);
    put(validation, record.step, record.val_loss);
  }
  std::vector<Curve> curves;
  if (!training.empty()) curves.push_back(curve(name, "train", group, false, training));
  if (!validation.empty()) {
    curves.push_back(curve(name, "eval", group, true, validation));
  }
  return curves;
}

std::optional<size_t> same_as(std::span<const Curve> curves, size_t index) {
  for (size_t before = 0; before < index; ++before) {
    if (curves[before].points == curves[index].points) return before;
  }
  return std::nullopt;
}

std::vector<Bucket> buckets(const Curve& curve, const Axis& axis, int count) {
  std::vector<Bucket> result;
  int current = -1;
  int64_t points = 0;
  for (const Curve::Point& point : curve.points) {
    const int part = std::min(static_cast<int>(axis.position(point.x) * count), count - 1);
    if (part != current || result.empty()) {
      result.push_back({0, 0, point.y, point.y});
      current = part;
      points = 0;
    }
    Bucket& bucket = result.back();
    ++points;
    const double weight = 1.0 / static_cast<double>(points);
    bucket.x += (point.x - bucket.x) * weight;
    bucket.mean += (point.y - bucket.mean) * weight;
    bucket.min = std::min(bucket.min, point.y);
    bucket.max = std::max(bucket.max, point.y);
  }
  return result;
}

Axes axes_of(std::span<const Curve> curves, bool log_x, int x_marks, int y_marks) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double x_min = kInfinity, x_max = -kInfinity, y_min = kInfinity, y_max = -kInfinity;
  for (const Curve& curve : curves) {
    for (const Curve::Point& point : curve.points) {
      x_min = std::min(x_min, point.x);
      x_max = std::max(x_max, point.x);
      y_min = std::min(y_min, point.y);
      y_max = std::max(y_max, point.y);
    }
  }
  Axes axes;
  if (log_x) {
    axes.x = logarithmic_axis(std::max(x_min, 1.0), x_max);
  } else {
    axes.x = linear_axis(0, std::max(x_max, 1.0), x_marks, 1);
  }
  const double margin = (y_max - y_min) / 30;
  axes.y = linear_axis(y_min - margin, y_max + margin, y_marks);
  return axes;
}

}  // namespace lockstep::train
