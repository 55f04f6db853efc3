#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// The elements in order along the first dimension.
Tensor msort(const Tensor& self);
/// Whether each of `elements` is (with `invert`: is not) one of `test_elements`; NaN never is.
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert = false);

}  // namespace lockstep
