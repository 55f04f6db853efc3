#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep::dist {

/// Largest sizes of buckets. `plan_buckets` requires both; a Reducer chooses a limit of 0 itself
/// (dist/ddp/bucket_choice.h).
struct BucketLimits {
  /// Limit of the first bucket: small, so that communication begins early.
  int64_t first_bytes = 0;
  /// Limit of the other buckets. A larger parameter gets a bucket of its own; none is split.
  int64_t bytes = 0;

  friend bool operator==(const BucketLimits&, const BucketLimits&) = default;
};

/// Limits used until the link and the times of gradients are measured, or if they never are.
inline constexpr BucketLimits kUsualLimits{.first_bytes = int64_t{1} << 20,
                                           .bytes = int64_t{2} << 20};
/// These are larger on a GPU: each sum costs launches there and takes processors from backward, and
/// the link is faster by orders of magnitude.
inline constexpr BucketLimits kUsualGpuLimits{.first_bytes = int64_t{1} << 20,
                                              .bytes = int64_t{25} << 20};
/// Returns `wanted` with the usual limits for gradients on `device` in place of limits of 0; a
/// first bucket that was not asked for is no larger than the others.
BucketLimits or_usual(const BucketLimits& wanted, DeviceType device = DeviceType::kCPU);

/// A parameter as a plan sees it.
struct PlannedParameter {
  int64_t elements = 0;
  int64_t element_bytes = 4;
  /// Index of the arena that holds its gradient: one for each dtype and device, from 0.
  int arena = 0;
};

/// A run of gradients that are reduced by one operation.
struct Bucket {
  int arena = 0;
  int64_t first = 0;  ///< elements of the arena: `first` to `end` - 1
  int64_t end = 0;
  std::vector<uint32_t> parameters;  ///< in the order of their offsets in the arena

  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Offset of every gradient and the buckets, which all ranks reduce in this order.
struct BucketPlan {
  std::vector<Bucket> buckets;
  std::vector<int64_t> offsets;         ///< by parameter: its first element in its arena
  std::vector<int64_t> arena_elements;  ///< by arena
  std::vector<uint32_t> bucket_of;      ///< by parameter

  friend bool operator==(const BucketPlan&, const BucketPlan&) = default;
};

/// Alignment of gradients in an arena, in bytes: a cache line, so that threads never write to the
/// same one, and vectors of any width are aligned.
inline constexpr int64_t kGradientAlignment = 64;
/// Elements that a gradient takes in an arena, with the gap behind it.
inline int64_t aligned_elements(int64_t elements, int64_t element_bytes) {
  const int64_t line = kGradientAlignment / element_bytes;
  return (elements + line - 1) / line * line;
}

/// Puts the parameters into buckets in the order `order`, in which their gradients become ready: a
/// permutation of all. A bucket holds parameters of one arena and is closed before it would grow
/// beyond its limit, gaps between its gradients included. Buckets come in the order in which they
/// are complete.
BucketPlan plan_buckets(std::span<const PlannedParameter> parameters,
                        std::span<const uint32_t> order, const BucketLimits& limits);

/// Returns the bytes of a bucket that are reduced, including the gaps between its gradients.
int64_t bucket_bytes(const Bucket& bucket, std::span<const PlannedParameter> parameters);

/// What a bucket holds.
struct BucketContent {
  std::string first;  ///< name of the parameter that is first in it
  std::string last;
  int64_t parameters = 0;      ///< number of parameters
  int64_t gradient_bytes = 0;  ///< bytes of gradients, without the gaps between them
};

/// Returns the parameters in reverse order of registration: roughly the order of backward, used
/// until the real one has been observed.
std::vector<uint32_t> reverse_order(size_t parameters);

}  // namespace lockstep::dist
