#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/ddp/bucket_plan.h"
#include "dist/ddp/link_cost.h"

namespace lockstep::dist {

/// Times at which gradients of a step become ready without communication, in seconds after the
/// first one.
struct GradientTimes {
  std::vector<double> ready;  ///< by parameter
  double backward_end = 0;    ///< end of backward
};

/// Returns the earliest time at which backward and the last reduction of the step can have ended
/// (best_schedule in dist/ddp/overlap.h): the plan's buckets use the link one after the other, and
/// their processor time is taken from the core that runs backward.
double end_of_sums(const BucketPlan& plan, std::span<const PlannedParameter> parameters,
                   const GradientTimes& times, const LinkCost& link);

/// Returns the bucket sizes to try, ascending: the powers of two from 64 KiB to `most` bytes, or
/// `wanted` alone if it is above 0.
std::vector<int64_t> candidate_sizes(int64_t wanted, int64_t most);

/// Returns the limits whose plan ends first by `end_of_sums`. Candidates are all powers of two from
/// 64 KiB to 64 MiB with a first bucket not larger than the others; the largest wins a tie. A limit
/// set in `wanted` is kept, and the other may then be any candidate.
BucketLimits choose_limits(std::span<const PlannedParameter> parameters,
                           std::span<const uint32_t> order, const GradientTimes& times,
                           const LinkCost& link, const BucketLimits& wanted = {});

/// Least relative gain for which the usual limits are given up. The link's latency and the times of
/// gradients are known to a few percent only; a plan chosen for a predicted gain of 1 ms in 700
/// cost 40 ms.
inline constexpr double kWorthwhile = 0.03;
/// Returns `choose_limits` if its plan ends sooner than that of the usual limits by more than
/// `kWorthwhile` of the latter's time; else `or_usual(wanted, device)`.
BucketLimits choose_worthwhile_limits(std::span<const PlannedParameter> parameters,
                                      std::span<const uint32_t> order, const GradientTimes& times,
                                      const LinkCost& link, const BucketLimits& wanted = {},
                                      DeviceType device = DeviceType::kCPU);

/// Limits that were chosen, with the measured link and the size of the resulting plan.
struct BucketChoice {
  BucketLimits limits;
  LinkCost link;  ///< by the times of the slowest rank
  size_t buckets = 0;
  int64_t first_bytes = 0;
  int64_t largest_bytes = 0;
};
/// Returns for example "7 buckets of up to 2.5 MiB, first 0.5, for a link of 118 MB/s + 0.4 ms".
std::string describe(const BucketChoice& choice);

}  // namespace lockstep::dist
