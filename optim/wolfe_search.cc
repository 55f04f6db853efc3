#include "optim/wolfe_search.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::optim {

namespace {

constexpr double kDecrease = 1e-4;  // c1
constexpr double kCurvature = 0.9;  // c2
constexpr int64_t kMostTrials = 25;

/// Where the cubic through both points, with their slopes, has its minimum, between `low` and
/// `high`; the middle of these if it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const LinePoint& left = a.t <= b.t ? a : b;
  const LinePoint& right = a.t <= b.t ? b : a;
  const double minimum = right.t - (right.t - left.t) * ((right.slope + d2 - d1) /
                                                         (right.slope - left.slope + 2 * d2));
  return std::min(std::max(minimum, low), high);
}

/// The two conditions, of points on the line from `start`.
struct Conditions {
  const LinePoint& start;

  bool is_too_high(const LinePoint& point) const {
    return point.loss > start.loss + kDecrease * point.t * start.slope;
  }
  bool is_flat_enough(const LinePoint& point) const {
    return std::abs(point.slope) <= -kCurvature * start.slope;
  }
};

/// Two points between which there is one that satisfies the conditions.
struct Bracket {
  std::array<LinePoint, 2> points;
  size_t low = 0;  ///< index of the point with the lower loss

  LinePoint& lower() { return points[low]; }
  LinePoint& higher() { return points[1 - low]; }
  double left() const { return std::min(points[0].t, points[1].t); }
  double right() const { return std::max(points[0].t, points[1].t); }
  void order() { low = points[0].loss <= points[1].loss ? 0 : 1; }
};

/// Proposes points inside a bracket: the cubic's minimum, or a tenth of the bracket away from its
/// end if that has come too close to an end before.
class Interpolation {
 public:
  double next(const Bracket& bracket) {
    const double left = bracket.left();
    const double right = bracket.right();
    const double t = cubic_minimum(bracket.points[0], bracket.points[1], left, right);
    const double margin = 0.1 * (right - left);
    const bool is_close = std::min(right - t, t - left) < margin;
    if (!is_close || !(was_close_ || t >= right || t <= left)) {
      was_close_ = is_close;
      return t;
    }
    was_close_ = false;
    return std::abs(t - right) < std::abs(t - left) ? right - margin : left + margin;
  }

 private:
  bool was_close_ = false;
};

}  // namespace

WolfeResult search_strong_wolfe(const std::function<LinePoint(double)>& evaluate,
                                const LinePoint& start, double t, double direction_size,
                                double tolerance_change) {
  const Conditions conditions{start};
  LinePoint previous = start;
  LinePoint current = evaluate(t);
  int64_t trials = 0;
  Bracket bracket;
  // Go on along the line until a point is past the minimum.
  while (true) {
    if (trials == kMostTrials) {
      bracket.points = {start, current};
      break;
    }
    if (conditions.is_too_high(current) || (trials > 1 && current.loss >= previous.loss)) {
      bracket.points = {previous, current};
      break;
    }
    if (conditions.is_flat_enough(current)) return {current, trials + 1};
    if (current.slope >= 0) {
      bracket.points = {previous, current};
      break;
    }
    const double nearest = current.t + 0.01 * (current.t - previous.t);
    const double next = cubic_minimum(previous, current, nearest, current.t * 10);
    previous = std::move(current);
    current = evaluate(next);
    ++trials;
  }

  // Narrow the bracket.
  bracket.order();
  Interpolation interpolation;
  while (trials < kMostTrials) {
    if ((bracket.right() - bracket.left()) * direction_size < tolerance_change) break;
    LinePoint point = evaluate(interpolation.next(bracket));
    ++trials;
    if (conditions.is_too_high(point) || point.loss >= bracket.lower().loss) {
      bracket.higher() = std::move(point);
      bracket.order();
      continue;
    }
    const bool done = conditions.is_flat_enough(point);
    if (!done && point.slope * (bracket.higher().t - bracket.lower().t) >= 0) {
      bracket.higher() = bracket.lower();
    }
    bracket.lower() = std::move(point);
    if (done) break;
  }
  return {bracket.lower(), trials + 1};
}

}  // namespace lockstep::optim
