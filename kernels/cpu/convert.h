#pragma once

#include <cstdint>

#include "kernels/common/lanes.h"

namespace lockstep::cpu {

/// Reads n elements, `stride` bytes apart, into contiguous lanes.
using LoadFunction = void (*)(int64_t n, void* to, const void* from, int64_t stride);
/// Writes n contiguous lanes, `stride` bytes apart.
using StoreFunction = void (*)(int64_t n, void* to, int64_t stride, const void* from);

/// Only bf16 can be loaded into kBF16 lanes, and only bf16 can be stored from them.
LoadFunction load_function(ComputeLane to, DType from);
/// Floats become integers by truncation, booleans by comparison with 0.
StoreFunction store_function(DType to, ComputeLane from);

/// The lane that elements pass in a cast: that in which `to` is stored, else the one that holds
/// every value of `from`.
inline ComputeLane lane_of_cast(DType to, DType from) {
  const ComputeLane lane = natural_lane(to);
  return is_stored_as(to, lane) ? lane : natural_lane(from);
}

}  // namespace lockstep::cpu
