#pragma once

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/promotion.h"

namespace lockstep {

/// A 0-d tensor with the value of `number`, in the dtype that it and `other` promote to.
inline Tensor number_tensor(const Scalar& number, const Tensor& other) {
  return full({}, number, {result_type(other, number), other.device()});
}

}  // namespace lockstep
