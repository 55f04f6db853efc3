#include "train/page/step_series.h"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

StepSeries::StepSeries(size_t most_points)
    : most_buckets_(std::max<size_t>(2, most_points / 4 * 2)) {}  // even, of two points each

void StepSeries::add(int64_t step, double value) {
  if (last_ && step <= last_->step) drop_after(step - 1);
  if (!std::isfinite(value)) {
    ++not_finite_;
    return;
  }
  const Point point{step, value};
  if (!first_) first_ = point;
  last_ = point;
  if (buckets_.empty() || buckets_.back().count >= width_) {
    if (buckets_.size() == most_buckets_) merge_pairs();
    buckets_.push_back({step, 1, point, point});
    return;
  }
  Bucket& bucket = buckets_.back();
  ++bucket.count;
  if (value < bucket.smallest.value) bucket.smallest = point;
  if (value > bucket.largest.value) bucket.largest = point;
}

void StepSeries::merge_pairs() {
  for (size_t i = 0; i < buckets_.size() / 2; ++i) {
    Bucket merged = buckets_[2 * i];
    const Bucket& next = buckets_[2 * i + 1];
    merged.count += next.count;
    if (next.smallest.value < merged.smallest.value) merged.smallest = next.smallest;
    if (next.largest.value > merged.largest.value) merged.largest = next.largest;
    buckets_[i] = merged;
  }
  buckets_.resize(buckets_.size() / 2);
  width_ *= 2;
}

void StepSeries::drop_after(int64_t step) {
  if (!last_ || last_->step <= step) return;
  while (!buckets_.empty() && buckets_.back().first > step) buckets_.pop_back();
  if (!buckets_.empty()) {
    // What else the bucket held up to that step is not known; it began with a step before it.
    Bucket& bucket = buckets_.back();
    if (bucket.smallest.step > step) bucket.smallest = bucket.largest;
    if (bucket.largest.step > step) bucket.largest = bucket.smallest;
    if (bucket.smallest.step > step) buckets_.pop_back();
  }
  if (buckets_.empty()) {
    if (first_->step > step) first_.reset();
    last_ = first_;
    if (first_) buckets_.push_back({first_->step, 1, *first_, *first_});
    return;
  }
  const Bucket& bucket = buckets_.back();
  last_ = bucket.smallest.step > bucket.largest.step ? bucket.smallest : bucket.largest;
}

std::vector<StepSeries::Point> StepSeries::points() const {
  std::vector<Point> points;
  if (empty()) return points;
  points.reserve(2 * buckets_.size() + 2);
  const auto add = [&](const Point& point) {
    if (points.empty() || points.back().step < point.step) points.push_back(point);
  };
  add(*first_);
  for (const Bucket& bucket : buckets_) {
    const bool falls = bucket.largest.step < bucket.smallest.step;
    add(falls ? bucket.largest : bucket.smallest);
    add(falls ? bucket.smallest : bucket.largest);
  }
  add(*last_);
  return points;
}

int64_t StepSeries::count() const {
  int64_t count = 0;
  for (const Bucket& bucket : buckets_) count += bucket.count;
  return count;
}

StepSeries::Point StepSeries::smallest() const {
  return std::ranges::min_element(buckets_, {},
                                  [](const Bucket& bucket) { return bucket.smallest.value; })
      ->smallest;
}

StepSeries::Point StepSeries::largest() const {
  // Compared the other way round, for the earliest of equal ones.
  return std::ranges::min_element(buckets_, {},
                                  [](const Bucket& bucket) { return -bucket.largest.value; })
      ->largest;
}

}  // namespace lockstep::train
