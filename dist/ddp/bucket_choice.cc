#include "dist/ddp/bucket_choice.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "dist/ddp/overlap.h"

namespace lockstep::dist {

namespace {

constexpr int64_t kMost = int64_t{64} << 20;  ///< largest limit that is tried

}  // namespace

std::vector<int64_t> candidate_sizes(int64_t wanted, int64_t most) {
  if (wanted > 0) return {wanted};
  constexpr int64_t kLeast = int64_t{64} << 10;
  std::vector<int64_t> sizes;
  for (int64_t size = kLeast; size <= most; size *= 2) sizes.push_back(size);
  return sizes;
}

double end_of_sums(const BucketPlan& plan, std::span<const PlannedParameter> parameters,
                   const GradientTimes& times, const LinkCost& link) {
  LS_ASSERT(times.ready.size() == parameters.size());
  StepProfile step{.ready = {}, .backward_end = times.backward_end};
  LinkProfile profile{.seconds = {}, .latency = link.latency};
  for (const Bucket& bucket : plan.buckets) {
    double ready = 0;
    for (const uint32_t each : bucket.parameters) ready = std::max(ready, times.ready[each]);
    const int64_t bytes = bucket_bytes(bucket, parameters);
    step.ready.push_back(ready);
    profile.seconds.push_back(link.seconds(bytes));
    profile.stolen_cpu.push_back(link.cpu(bytes));
  }
  return best_schedule(step, profile);
}

BucketLimits choose_limits(std::span<const PlannedParameter> parameters,
                           std::span<const uint32_t> order, const GradientTimes& times,
                           const LinkCost& link, const BucketLimits& wanted) {
  BucketLimits best;
  double best_end = std::numeric_limits<double>::infinity();
  for (const int64_t bytes : candidate_sizes(wanted.bytes, kMost)) {
    for (const int64_t first : candidate_sizes(wanted.first_bytes, kMost)) {
      // A size that was not asked for is no larger than the others.
      const BucketLimits limits{
          .first_bytes = wanted.first_bytes > 0 ? first : std::min(first, bytes), .bytes = bytes};
      const double end =
          end_of_sums(plan_buckets(parameters, order, limits), parameters, times, link);
      if (end > best_end) continue;
      best_end = end;
      best = limits;
    }
  }
  return best;
}

BucketLimits choose_worthwhile_limits(std::span<const PlannedParameter> parameters,
                                      std::span<const uint32_t> order, const GradientTimes& times,
                                      const LinkCost& link, const BucketLimits& wanted,
                                      DeviceType device) {
  const auto end = [&](const BucketLimits& limits) {
    return end_of_sums(plan_buckets(parameters, order, limits), parameters, times, link);
  };
  const BucketLimits best = choose_limits(parameters, order, times, link, wanted);
  const BucketLimits usual = or_usual(wanted, device);
  return end(best) < (1 - kWorthwhile) * end(usual) ? best : usual;
}

std::string describe(const BucketChoice& choice) {
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::string text = fmt::format("{} bucket{} of up to {:.3g} MiB, first {:.3g}", choice.buckets,
                                 choice.buckets == 1 ? "" : "s", mib(choice.largest_bytes),
                                 mib(choice.first_bytes));
  const std::string link = describe(choice.link);
  if (!link.empty()) text += ", for a link of " + link;
  return text;
}

}  // namespace lockstep::dist
