#include "dist/ddp/step_times.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::dist {

void StepTimes::step_begun(size_t buckets) {
  sent_.resize(buckets);
  gradients_.clear();
  clock_.begin();
}

void StepTimes::gradient_ready(uint32_t parameter) {
  if (gradients_.size() <= parameter) gradients_.resize(parameter + 1);
  clock_.set(gradients_[parameter].ready);
  gradients_[parameter].is_told = true;
}

std::optional<StepTimes::TimePoint> StepTimes::gradient_time(uint32_t parameter) const {
  if (parameter >= gradients_.size() || !gradients_[parameter].is_told) return std::nullopt;
  return clock_.time(gradients_[parameter].ready);
}

void StepTimes::bucket_ready(size_t bucket, int64_t bytes) {
  sent_[bucket].bytes = bytes;
  clock_.set(sent_[bucket].ready);
}

void StepTimes::bucket_launched(size_t bucket) { clock_.set(sent_[bucket].launched); }

void StepTimes::bucket_under_way(size_t bucket, Work reduction) {
  sent_[bucket].work = std::move(reduction);
}

void StepTimes::all_reduced(std::chrono::steady_clock::duration elsewhere) {
  const auto waited = std::chrono::steady_clock::now() - finish_called() - elsewhere;
  waited_seconds_ = std::chrono::duration<double>(waited).count();
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
