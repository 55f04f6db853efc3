#pragma once

#include "core/tensor.h"

namespace lockstep {

/// Matrix product of self [n, k] and mat2 [k, m].
Tensor mm(const Tensor& self, const Tensor& mat2);
/// The same into `out`, which is resized unless it is a view.
const Tensor& mm_out(const Tensor& out, const Tensor& self, const Tensor& mat2);
/// beta * self + alpha * mat1 mat2; self broadcasts to [n, m].
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
             const Scalar& alpha = 1);
/// Batched product of self [b, n, k] and mat2 [b, k, m].
Tensor bmm(const Tensor& self, const Tensor& mat2);
/// Product with NumPy's rules for vectors, matrices and leading batch dimensions.
Tensor matmul(const Tensor& self, const Tensor& other);
/// input [..., in] times weight [out, in] transposed, plus bias [out].
Tensor linear(const Tensor& input, const Tensor& weight, OptionalTensor bias = {});

}  // namespace lockstep
