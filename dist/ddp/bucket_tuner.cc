#include "dist/ddp/bucket_tuner.h"

#include <algorithm>
#include <utility>

#include "core/ops/factory/factory.h"
#include "dist/group/agreement.h"

namespace lockstep::dist {

namespace {

BucketLimits of_rank_0(ProcessGroup& group, const BucketLimits& limits) {
  const Tensor both = empty({2}, {DType::kI64, kCPU});
  auto* const values = both.data<int64_t>();
  values[0] = limits.first_bytes;
  values[1] = limits.bytes;
  group.broadcast(both, 0).wait();
  return {.first_bytes = values[0], .bytes = values[1]};
}

}  // namespace

void BucketTuner::end_step(TimePoint backward_end) {
  TimePoint first = backward_end;
  for (const TimePoint& each : arrived_) {
    if (each != TimePoint()) first = std::min(first, each);
  }
  const auto seconds = [&](TimePoint at) {
    return std::chrono::duration<double>(at - first).count();
  };
  GradientTimes times{.ready = {}, .backward_end = seconds(backward_end)};
  for (const TimePoint& each : arrived_) {
    // A parameter without a gradient counts as ready at the end of backward, when it becomes zero.
    times.ready.push_back(each == TimePoint() ? times.backward_end : seconds(each));
  }
  if (measured_steps_++ == 0) {
    times_ = std::move(times);
    return;
  }
  times_.backward_end = std::min(times_.backward_end, times.backward_end);
  for (size_t i = 0; i < times.ready.size(); ++i) {
    times_.ready[i] = std::min(times_.ready[i], times.ready[i]);
  }
}

BucketChoice BucketTuner::choose(ProcessGroup& group, std::span<const PlannedParameter> parameters,
                                 std::span<const uint32_t> order, const BucketLimits& wanted,
                                 int64_t rows, const StartReduction& start) const {
  int64_t bytes = 0;
  for (const PlannedParameter& each : parameters) bytes += each.elements * each.element_bytes;
  LinkTimes link = measure_link(group, device_, rows, bytes, start);
  GradientTimes times = times_;
  std::vector<double*> measured = {&link.one_small, &link.small,     &link.large,
                                   &link.small_cpu, &link.large_cpu, &times.backward_end};
  for (double& each : times.ready) measured.push_back(&each);
  std::vector<double> longest;
  for (const double* each : measured) longest.push_back(*each);
  largest_of(group, longest);
  for (size_t i = 0; i < measured.size(); ++i) *measured[i] = longest[i];

  BucketChoice choice{.limits = {}, .link = link_cost(link)};
  choice.limits = of_rank_0(
      group, choose_worthwhile_limits(parameters, order, times, choice.link, wanted, device_.type));
  const BucketPlan plan = plan_buckets(parameters, order, choice.limits);
  choice.buckets = plan.buckets.size();
  for (const Bucket& each : plan.buckets) {
    choice.largest_bytes = std::max(choice.largest_bytes, bucket_bytes(each, parameters));
  }
  if (!plan.buckets.empty()) choice.first_bytes = bucket_bytes(plan.buckets[0], parameters);
  return choice;
}

}  // namespace lockstep::dist
