#pragma once

#include "kernels/cpu/convert.h"

namespace lockstep::cpu {

/// Calls `body.operator()<T>()` with the C++ type of the dtype's natural lane.
template <class Body>
void with_lane(DType dtype, const Body& body) {
  switch (natural_lane(dtype)) {
    case Lane::kF32:
      return body.template operator()<float>();
    case Lane::kF64:
      return body.template operator()<double>();
    default:
      return body.template operator()<int64_t>();
  }
}

/// The same for dtypes that the shape rules have made sure are floating.
template <class Body>
void with_floating_lane(DType dtype, const Body& body) {
  if (dtype == DType::kF64) {
    body.template operator()<double>();
  } else {
    body.template operator()<float>();
  }
}

}  // namespace lockstep::cpu
