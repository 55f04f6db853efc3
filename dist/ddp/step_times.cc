#include "dist/ddp/step_times.h"

#include <algorithm>
#include <chrono>

namespace lockstep::dist {

void StepTimes::begin(size_t buckets) {
  sent_.resize(buckets);
  clock_.begin();
}

double StepTimes::exposed_seconds() const {
  if (!clock_.is_device() || sent_.empty()) return waited_seconds_;
  const Sent& last = sent_.back();
  const auto exposed = clock_.end(last.work, last.launched) - backward_ended();
  return std::max(0.0, std::chrono::duration<double>(exposed).count());
}

std::vector<BucketTimes> StepTimes::buckets() const {
  std::vector<BucketTimes> result;
  for (const Sent& each : sent_) {
    result.push_back({.bytes = each.bytes,
                      .ready = clock_.time(each.ready),
                      .launched = clock_.time(each.launched),
                      .done = clock_.end(each.work, each.launched)});
  }
  return result;
}

}  // namespace lockstep::dist
