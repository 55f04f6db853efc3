#include "dist/simulate/step_limit.h"

#include <limits>

namespace lockstep::dist {

namespace {

/// `work` and `cluster` without what `limit` stands for.
void take_away(StepLimit limit, StepWork& work, Cluster& cluster) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (limit) {
    case StepLimit::kComputation:
      work = scaled(std::move(work), 0);
      break;
    case StepLimit::kStragglers:
      cluster.stragglers = {};
      break;
    case StepLimit::kLinkInside:
      cluster.inside.bytes_per_second = kInfinity;
      break;
    case StepLimit::kLinkBetween:
      cluster.between.bytes_per_second = kInfinity;
      break;
    case StepLimit::kLatency:
      cluster.inside.latency = cluster.between.latency = cluster.per_operation = 0;
      break;
    case StepLimit::kProcessor:
      cluster.cpu_per_byte = 0;
      break;
  }
}

}  // namespace

const char* name(StepLimit limit) {
  switch (limit) {
    case StepLimit::kComputation:
      return "computation";
    case StepLimit::kStragglers:
      return "stragglers";
    case StepLimit::kLinkInside:
      return "link inside hosts";
    case StepLimit::kLinkBetween:
      return "link between hosts";
    case StepLimit::kLatency:
      return "latency";
    case StepLimit::kProcessor:
      return "CPU";
  }
  return "unknown";
}

StepLimit limit_of_step(
    const StepWork& work, const Cluster& cluster,
    const std::function<double(const StepWork& work, const Cluster& cluster)>& seconds) {
  StepLimit limit = StepLimit::kComputation;
  double shortest = std::numeric_limits<double>::infinity();
  for (const StepLimit each :
       {StepLimit::kComputation, StepLimit::kStragglers, StepLimit::kLinkInside,
        StepLimit::kLinkBetween, StepLimit::kLatency, StepLimit::kProcessor}) {
    StepWork less = work;
    Cluster faster = cluster;
    take_away(each, less, faster);
    const double left = seconds(less, faster);
    if (left >= shortest) continue;
    shortest = left;
    limit = each;
  }
  return limit;
}

}  // namespace lockstep::dist
