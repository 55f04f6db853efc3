#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::dist {

/// How large buckets become. Of a plan both are given; where a Reducer is asked for one of 0, it
/// chooses (dist/ddp/bucket_choice.h).
struct BucketLimits {
  /// Of the first bucket: small, so that communication begins early.
  int64_t first_bytes = 0;
  /// Of the others. A larger parameter has a bucket of its own; none is cut.
  int64_t bytes = 0;

  friend bool operator==(const BucketLimits&, const BucketLimits&) = default;
};

/// Where nothing is known.
inline constexpr BucketLimits kUsualLimits{.first_bytes = int64_t{1} << 20,
                                           .bytes = int64_t{2} << 20};
/// `wanted`, with the usual ones for those of 0.
BucketLimits or_usual(const BucketLimits& wanted);

/// A parameter as a plan sees it.
struct PlannedParameter {
  int64_t elements = 0;
  int64_t element_bytes = 4;
  /// Which memory its gradient belongs to: one for each dtype and device, numbered from 0.
  int arena = 0;
};

/// A run of gradients that are reduced by one operation.
struct Bucket {
  int arena = 0;
  int64_t first = 0;  ///< elements of the arena: `first` to `end` - 1
  int64_t end = 0;
  std::vector<uint32_t> parameters;  ///< in the order in which they lie there

  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Where every gradient lies, and what is reduced together, in this order on all ranks.
struct BucketPlan {
  std::vector<Bucket> buckets;
  std::vector<int64_t> offsets;         ///< by parameter: its first element in its arena
  std::vector<int64_t> arena_elements;  ///< by arena
  std::vector<uint32_t> bucket_of;      ///< by parameter

  friend bool operator==(const BucketPlan&, const BucketPlan&) = default;
};

/// Gradients begin at multiples of so many elements: the block of the norms, at which shards are
/// cut, too.
inline constexpr int64_t kGradientAlignment = 4096;

/// Puts the parameters into buckets in the order `order`, in which their gradients become ready: a
/// permutation of all. A bucket holds parameters of one arena and is closed before it would grow
/// beyond its limit. Buckets come in the order in which they are complete.
BucketPlan plan_buckets(std::span<const PlannedParameter> parameters,
                        std::span<const uint32_t> order, const BucketLimits& limits);

/// What is reduced of a bucket, with the gaps between its gradients.
int64_t bucket_bytes(const Bucket& bucket, std::span<const PlannedParameter> parameters);

/// The reverse of the order in which parameters were registered: what backward does about, before
/// anything is known.
std::vector<uint32_t> reverse_order(size_t parameters);

}  // namespace lockstep::dist
