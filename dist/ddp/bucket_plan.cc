#include "dist/ddp/bucket_plan.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

/// The bucket of an arena that is still being filled.
struct Open {
  Bucket bucket;
  int64_t bytes = 0;
};

}  // namespace

BucketLimits or_usual(const BucketLimits& wanted, DeviceType device) {
  const BucketLimits& usual = device == DeviceType::kCUDA ? kUsualGpuLimits : kUsualLimits;
  const int64_t bytes = wanted.bytes > 0 ? wanted.bytes : usual.bytes;
  const int64_t first =
      wanted.first_bytes > 0 ? wanted.first_bytes : std::min(usual.first_bytes, bytes);
  return {.first_bytes = first, .bytes = bytes};
}

BucketPlan plan_buckets(std::span<const PlannedParameter> parameters,
                        std::span<const uint32_t> order, const BucketLimits& limits) {
  LS_ASSERT(order.size() == parameters.size());
  LS_CHECK(limits.first_bytes > 0 && limits.bytes > 0, DistError,
           "[buckets] expected limits of at least one byte, got {} for the first and {}.",
           limits.first_bytes, limits.bytes);
  int arenas = 0;
  for (const PlannedParameter& each : parameters) arenas = std::max(arenas, each.arena + 1);

  BucketPlan plan;
  plan.offsets.resize(parameters.size(), -1);
  plan.bucket_of.resize(parameters.size());
  plan.arena_elements.resize(static_cast<size_t>(arenas));
  std::vector<Open> open(static_cast<size_t>(arenas));
  const auto close = [&](Open& filled) {
    plan.buckets.push_back(std::move(filled.bucket));
    filled = {};
  };
  for (const uint32_t index : order) {
    const PlannedParameter& parameter = parameters[index];
    LS_ASSERT(plan.offsets[index] == -1);
    const auto arena = static_cast<size_t>(parameter.arena);
    Open& filling = open[arena];
    // With the gap behind it, which is reduced with it.
    const int64_t elements = aligned_elements(parameter.elements, parameter.element_bytes);
    const int64_t bytes = elements * parameter.element_bytes;
    const int64_t limit = plan.buckets.empty() ? limits.first_bytes : limits.bytes;
    if (!filling.bucket.parameters.empty() && filling.bytes + bytes > limit) close(filling);
    int64_t& end = plan.arena_elements[arena];
    if (filling.bucket.parameters.empty()) {
      filling.bucket.arena = parameter.arena;
      filling.bucket.first = end;
    }
    plan.offsets[index] = end;
    end += elements;
    filling.bucket.end = end;
    filling.bucket.parameters.push_back(index);
    filling.bytes += bytes;
  }
  for (Open& each : open) {
    if (!each.bucket.parameters.empty()) close(each);
  }
  // Buckets of several arenas fill concurrently: sort by the arrival of each one's last gradient.
  std::vector<uint32_t> place(parameters.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::ranges::sort(plan.buckets, {},
                    [&](const Bucket& each) { return place[each.parameters.back()]; });
  for (uint32_t i = 0; i < plan.buckets.size(); ++i) {
    for (const uint32_t each : plan.buckets[i].parameters) plan.bucket_of[each] = i;
  }
  return plan;
}

int64_t bucket_bytes(const Bucket& bucket, std::span<const PlannedParameter> parameters) {
  return (bucket.end - bucket.first) * parameters[bucket.parameters.front()].element_bytes;
}

std::vector<uint32_t> reverse_order(size_t parameters) {
  std::vector<uint32_t> order(parameters);
  std::iota(order.rbegin(), order.rend(), 0U);
  return order;
}

}  // namespace lockstep::dist
