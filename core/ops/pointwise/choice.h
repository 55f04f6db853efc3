#pragma once

#include "core/ops/pointwise/pointwise.h"

namespace lockstep {

/// The gradient of one operand of maximum, minimum or clamp: `grad` where this operand was chosen,
/// half of it where both are equal, else 0.
inline Tensor share_of_choice(const Tensor& grad, const Tensor& not_chosen, const Tensor& equal) {
  return masked_fill(where(equal, mul(grad, 0.5), grad), not_chosen, 0);
}

}  // namespace lockstep
