#pragma once

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/promotion.h"

namespace lockstep {

/// A number as an operand beside `other`, of the dtype that both promote to.
inline Tensor number_tensor(const Scalar& number, const Tensor& other) {
  return full({}, number, {result_type(other, number), other.device()});
}

}  // namespace lockstep
