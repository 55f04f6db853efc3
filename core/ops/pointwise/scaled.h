#pragma once

#include "core/ops/pointwise/pointwise.h"

namespace lockstep {

inline bool is_one(const Scalar& number) { return number.to_double() == 1.0; }

/// factor * tensor, or the tensor itself where the factor is one.
inline Tensor scaled(const Tensor& tensor, const Scalar& factor) {
  return is_one(factor) ? tensor : mul(tensor, factor);
}

}  // namespace lockstep
