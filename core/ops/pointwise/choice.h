#pragma once

#include "core/ops/pointwise/pointwise.h"

namespace lockstep {

/// The gradient of maximum, minimum or a bound for one side: all of it where that side was chosen,
/// half of it where both sides are equal.
inline Tensor share_of_choice(const Tensor& grad, const Tensor& not_chosen, const Tensor& equal) {
  return masked_fill(where(equal, mul(grad, 0.5), grad), not_chosen, 0);
}

}  // namespace lockstep
