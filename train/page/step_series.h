#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::train {

/// A quantity over the steps of a run, in bounded memory however long the run is.
///
/// Values are kept as they are while they fit. After that neighbours share a bucket, of which the
/// smallest and the largest value are kept with their steps, so that no extreme is ever lost. Not
/// thread-safe.
class StepSeries {
 public:
  struct Point {
    int64_t step = 0;
    double value = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };

  /// Keeps at most about `most_points` points, at least 4.
  explicit StepSeries(size_t most_points = size_t{1} << 14);

  /// Adds the value of a step. Values of this step and later ones, of an earlier attempt, are
  /// dropped. A value that is not finite is only counted.
  void add(int64_t step, double value);
  /// Drops what is known of the steps after `step`.
  void drop_after(int64_t step);

  /// By step, which rises. The first, the last, the smallest and the largest value are among them.
  std::vector<Point> points() const;
  bool empty() const { return buckets_.empty(); }
  /// Finite values that were added, and are no longer exact where some of a bucket were dropped.
  int64_t count() const;
  int64_t not_finite() const { return not_finite_; }
  // Of a series that is not empty; of equal values the earliest.
  Point first() const { return *first_; }
  Point last() const { return *last_; }
  Point smallest() const;
  Point largest() const;

 private:
  struct Bucket {
    int64_t first = 0;  ///< step
    int64_t count = 0;
    Point smallest;
    Point largest;
  };
  void merge_pairs();

  size_t most_buckets_;
  int64_t width_ = 1;  ///< values of a bucket
  std::vector<Bucket> buckets_;
  std::optional<Point> first_;
  std::optional<Point> last_;
  int64_t not_finite_ = 0;
};

}  // namespace lockstep::train
