#include "train/report/step_overlap.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "dist/group/agreement.h"

namespace lockstep::train {

namespace {

double seconds_between(dist::BucketTimes::TimePoint from, dist::BucketTimes::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

StepOverlap overlap_of_step(const dist::StepTimes& times, double seconds) {
  const auto start = times.begun();
  StepOverlap step;
  step.backward_end = seconds_between(start, times.backward_ended());
  step.exposed = times.exposed_seconds();
  // A step begun ahead, while the host waited for the previous one, ran for longer than `seconds`.
  step.seconds = std::max(seconds, step.backward_end);
  for (const dist::BucketTimes& bucket : times.buckets()) {
    step.bytes.push_back(bucket.bytes);
    step.ready.push_back(seconds_between(start, bucket.ready));
    step.launched.push_back(seconds_between(start, bucket.launched));
    step.done.push_back(seconds_between(start, bucket.done));
    step.seconds = std::max(step.seconds, step.done.back());
  }
  return step;
}

StepOverlap overlap_of_step(const dist::StepTimes& times, double seconds,
                            std::span<const dist::GatherWait> waits) {
  StepOverlap step = overlap_of_step(times, seconds);
  for (const dist::GatherWait& each : waits) {
    step.gather_wait.push_back(each.seconds);
    step.gather_late.push_back(each.late_seconds);
  }
  return step;
}

double StepOverlap::gathers() const {
  return std::accumulate(gather_wait.begin(), gather_wait.end(), 0.0);
}

StepOverlap median_step(std::span<const StepOverlap> steps) {
  LS_ASSERT(!steps.empty());
  const auto over_steps = [&](const auto& figure) {
    std::vector<double> values;
    for (const StepOverlap& each : steps) values.push_back(figure(each));
    return median(std::move(values));
  };
  StepOverlap result;
  result.seconds = over_steps([](const StepOverlap& s) { return s.seconds; });
  result.backward_end = over_steps([](const StepOverlap& s) { return s.backward_end; });
  result.exposed = over_steps([](const StepOverlap& s) { return s.exposed; });
  result.bytes = steps[0].bytes;
  for (size_t b = 0; b < result.bytes.size(); ++b) {
    result.ready.push_back(over_steps([b](const StepOverlap& s) { return s.ready[b]; }));
    result.launched.push_back(over_steps([b](const StepOverlap& s) { return s.launched[b]; }));
    result.done.push_back(over_steps([b](const StepOverlap& s) { return s.done[b]; }));
  }
  for (size_t u = 0; u < steps[0].gather_wait.size(); ++u) {
    result.gather_wait.push_back(
        over_steps([u](const StepOverlap& s) { return s.gather_wait[u]; }));
    result.gather_late.push_back(
        over_steps([u](const StepOverlap& s) { return s.gather_late[u]; }));
  }
  return result;
}

StepOverlap latest_of_ranks(dist::ProcessGroup& group, StepOverlap step) {
  std::vector<double> values = {step.seconds, step.backward_end, step.exposed};
  const auto lists = {&step.ready, &step.launched, &step.done, &step.gather_wait,
                      &step.gather_late};
  for (auto* const list : lists) values.insert(values.end(), list->begin(), list->end());
  dist::largest_of(group, values);
  step.seconds = values[0];
  step.backward_end = values[1];
  step.exposed = values[2];
  auto from = values.begin() + 3;
  for (auto* const list : lists) {
    std::copy_n(from, list->size(), list->begin());
    from += std::ssize(*list);
  }
  return step;
}

void RecentOverlap::add(StepOverlap step) {
  if (!steps_.empty() && steps_.back().bytes != step.bytes) steps_.clear();
  steps_.push_back(std::move(step));
  if (steps_.size() > kSteps) steps_.pop_front();
}

}  // namespace lockstep::train
