#include <algorithm>
#include <limits>
#include <numeric>

#include "dist/ddp/bucket_choice.h"
#include "dist/simulate/collective_cost.h"
#include "dist/simulate/simulated_step.h"
#include "dist/simulate/stragglers.h"

namespace lockstep::dist {

namespace {

/// Largest limit that is tried: more than a reducer's (dist/ddp/bucket_choice.cc), as links of
/// clusters have more latency for their bandwidth.
constexpr int64_t kMost = int64_t{1} << 30;

/// A step of which only the buckets are not decided.
class Copies {
 public:
  Copies(const StepWork& work, const Cluster& cluster)
      : cluster_(cluster),
        slowest_(slowest_factor(cluster.stragglers, cluster.ranks(), cluster.hosts)),
        parameters_(work.parameters()),
        order_(parameters_.size()) {
    const double earlier =
        static_cast<double>(work.micro_batches - 1) * (work.forward() + work.backward());
    backward_begin_ = earlier + work.forward();
    backward_end_ = backward_begin_ + work.backward();
    tail_ = work.update;
    std::iota(order_.begin(), order_.end(), uint32_t{0});
    std::ranges::stable_sort(order_, {}, [&](uint32_t i) { return parameters_[i].ready; });
    for (const ParameterWork& each : parameters_) planned_.push_back({.elements = each.elements});
  }

  SimulatedBuckets buckets(const BucketLimits& limits) const {
    SimulatedBuckets result;
    result.step.backward_end = backward_end_ * slowest_;
    // What all ranks wait for has been waited for when the update begins.
    result.step.tail = tail_;
    for (const Bucket& bucket : plan_buckets(planned_, order_, limits).buckets) {
      double ready = 0;
      for (const uint32_t each : bucket.parameters) {
        ready = std::max(ready, parameters_[each].ready);
      }
      const auto bytes = static_cast<double>(bucket_bytes(bucket, planned_));
      const CollectiveCost cost =
          collective_cost(OpKind::kAllReduce, bytes, world_of(cluster_), cluster_);
      result.step.ready.push_back((backward_begin_ + ready) * slowest_);
      result.link.seconds.push_back(cost.link);
      result.link.stolen_cpu.push_back(cost.cpu);
      result.link.latency = std::max(result.link.latency, cost.latency);
    }
    return result;
  }

  double sent() const {
    double bytes = 0;
    for (const PlannedParameter& each : planned_) {
      bytes += static_cast<double>(aligned_elements(each.elements, each.element_bytes) *
                                   each.element_bytes);
    }
    return sent_bytes(OpKind::kAllReduce, bytes, world_of(cluster_));
  }

 private:
  const Cluster& cluster_;
  double slowest_;
  std::vector<ParameterWork> parameters_;
  std::vector<PlannedParameter> planned_;
  std::vector<uint32_t> order_;
  double backward_begin_ = 0;
  double backward_end_ = 0;
  double tail_ = 0;
};

}  // namespace

SimulatedBuckets simulate_buckets(const StepWork& work, const Cluster& cluster,
                                  const BucketLimits& limits) {
  return Copies(work, cluster).buckets(or_usual(limits));
}

SimulatedStep simulate_copies(const StepWork& work, const Cluster& cluster,
                              const BucketLimits& wanted) {
  SimulatedStep result;
  result.compute = work.seconds();
  if (cluster.ranks() == 1) {
    result.seconds = result.compute;
    return result;
  }
  const Copies copies(work, cluster);
  result.seconds = std::numeric_limits<double>::infinity();
  for (const int64_t bytes : candidate_sizes(wanted.bytes, kMost)) {
    // A first bucket that was not asked for is as large as the others or of the usual size.
    for (const int64_t first : {bytes, std::min(bytes, kUsualLimits.first_bytes)}) {
      const BucketLimits limits{.first_bytes = wanted.first_bytes > 0 ? wanted.first_bytes : first,
                                .bytes = bytes};
      const SimulatedBuckets buckets = copies.buckets(limits);
      const double seconds = best_schedule(buckets.step, buckets.link);
      if (seconds > result.seconds) continue;
      result.seconds = seconds;
      result.buckets = limits;
    }
  }
  // The losses of all ranks are summed at the end.
  result.seconds +=
      collective_cost(OpKind::kAllReduce, sizeof(double), world_of(cluster), cluster).seconds();
  result.straggling = (result.compute - work.update) *
                      (slowest_factor(cluster.stragglers, cluster.ranks(), cluster.hosts) - 1);
  result.exposed = std::max(0.0, result.seconds - result.compute - result.straggling);
  result.sent_bytes = copies.sent();
  return result;
}

}  // namespace lockstep::dist
