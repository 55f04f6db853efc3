#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/ddp/bucket_plan.h"
#include "dist/ddp/link_cost.h"

namespace lockstep::dist {

/// When the gradients of a step were there, computed without communication; in seconds.
struct GradientTimes {
  std::vector<double> ready;  ///< by parameter
  double backward_end = 0;
};

/// When the step's last sum is there and backward has ended, at best (dist/ddp/overlap.h): the
/// plan's buckets have the link in turn, and their processor time comes out of backward's core.
double end_of_sums(const BucketPlan& plan, std::span<const PlannedParameter> parameters,
                   const GradientTimes& times, const LinkCost& link);

/// The limits of the plan whose sums end first (`end_of_sums`), of all powers of two from 64 KiB to
/// 64 MiB, the first bucket not larger than the others; of those that end at the same time, the
/// largest. A limit that `wanted` gives stays, and the other may be any of these.
BucketLimits choose_limits(std::span<const PlannedParameter> parameters,
                           std::span<const uint32_t> order, const GradientTimes& times,
                           const LinkCost& link, const BucketLimits& wanted = {});

/// What is known of times and links is not more exact than this part of it.
inline constexpr double kWorthwhile = 0.03;
/// `choose_limits`, where that ends the sums sooner than the usual limits by more than
/// `kWorthwhile` of their time; else the usual ones, or `wanted`.
BucketLimits choose_worthwhile_limits(std::span<const PlannedParameter> parameters,
                                      std::span<const uint32_t> order, const GradientTimes& times,
                                      const LinkCost& link, const BucketLimits& wanted = {});

/// Limits that were chosen, and what they led to.
struct BucketChoice {
  BucketLimits limits;
  LinkCost link;  ///< of the slowest rank
  size_t buckets = 0;
  int64_t first_bytes = 0;
  int64_t largest_bytes = 0;
};
/// "7 buckets of up to 2.5 MiB, first 0.5, for a link of 118 MB/s + 0.4 ms".
std::string describe(const BucketChoice& choice);

}  // namespace lockstep::dist
