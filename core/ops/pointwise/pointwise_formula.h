#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Formulas of two or three operands, computed in one pass and rounded once. pointwise.h describes
// what all pointwise operators have in common.

/// self + value * tensor1 * tensor2. Throws DTypeError for bools.
Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
               const Scalar& value = 1);
const Tensor& addcmul_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                       const Scalar& value = 1);
/// self + value * tensor1 / tensor2. Throws DTypeError when tensor1 and tensor2 are both integers.
Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
               const Scalar& value = 1);
const Tensor& addcdiv_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                       const Scalar& value = 1);
/// self + weight * (end - self). Operands of one floating dtype; a 0-d weight may have another.
Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight);
Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight);
const Tensor& lerp_(const Tensor& self, const Tensor& end, const Scalar& weight);

/// sqrt(self^2 + other^2) without intermediate overflow. Floating dtypes only.
Tensor hypot(const Tensor& self, const Tensor& other);
/// Angle of the point (other, self) in (-pi, pi].
Tensor atan2(const Tensor& self, const Tensor& other);
/// log(exp(self) + exp(other)) without intermediate overflow. Floating dtypes only.
Tensor logaddexp(const Tensor& self, const Tensor& other);
/// self * log(other), 0 where self is 0 and other is not NaN.
Tensor xlogy(const Tensor& self, const Tensor& other);

/// self to the power of exponent. An integer to a negative power is 0, except for 1 and -1.
Tensor pow(const Tensor& self, const Tensor& exponent);
Tensor pow(const Scalar& self, const Tensor& exponent);

}  // namespace lockstep
