#include "train/report/step_durations.h"

#include <algorithm>
#include <cmath>

namespace lockstep::train {
namespace {

constexpr double kLowest = 1e-3;  // milliseconds
constexpr double kRatio = 1.005;

}  // namespace

void StepDurations::add(double milliseconds) {
  const double bucket = std::log(std::max(milliseconds, kLowest) / kLowest) / std::log(kRatio);
  ++buckets_[std::min(static_cast<size_t>(bucket), kBuckets - 1)];
  least_ = count_ == 0 ? milliseconds : std::min(least_, milliseconds);
  most_ = count_ == 0 ? milliseconds : std::max(most_, milliseconds);
  ++count_;
}

double StepDurations::percentile(double percent) const {
  const auto rank = static_cast<int64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
  if (rank <= 1) return least_;
  if (rank >= count_) return most_;
  int64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen < rank) continue;
    return std::clamp(kLowest * std::pow(kRatio, static_cast<double>(i) + 0.5), least_, most_);
  }
  return most_;
}

}  // namespace lockstep::train
