#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Products of matrices and vectors. Operands must have one dtype, any but bool, which is also the
// result's. f32 sums in f32, bf16 and f16 sum in f32 and round once, integers wrap around. The bits
// of a result depend on shapes and layouts, never on the number of threads.
// Functions `x_out` write into `out`, which is resized unless it is a view.

/// Matrix product of self [n, k] and mat2 [k, m].
Tensor mm(const Tensor& self, const Tensor& mat2);
const Tensor& mm_out(const Tensor& out, const Tensor& self, const Tensor& mat2);
/// beta * self + alpha * mat1 mat2 for mat1 [n, k] and mat2 [k, m]; self broadcasts to [n, m].
/// With beta = 0 the elements of self are not read, so NaN does not spread from them.
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
             const Scalar& alpha = 1);
const Tensor& addmm_out(const Tensor& out, const Tensor& self, const Tensor& mat1,
                        const Tensor& mat2, const Scalar& beta = 1, const Scalar& alpha = 1);
/// Batched product of self [b, n, k] and mat2 [b, k, m].
Tensor bmm(const Tensor& self, const Tensor& mat2);
const Tensor& bmm_out(const Tensor& out, const Tensor& self, const Tensor& mat2);
/// beta * self + alpha * batch1 batch2 for batch1 [b, n, k] and batch2 [b, k, m]; self broadcasts
/// to [b, n, m].
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
               const Scalar& beta = 1, const Scalar& alpha = 1);
/// Product of matrix self [n, k] and vector vec [k].
Tensor mv(const Tensor& self, const Tensor& vec);
/// beta * self + alpha * mat vec for mat [n, k] and vec [k]; self broadcasts to [n].
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1,
             const Scalar& alpha = 1);
/// Sum of the products of two vectors of one length, as a 0-d tensor.
Tensor dot(const Tensor& self, const Tensor& tensor);
/// Product with NumPy's rules: two vectors give their dot product; a vector on the left is a row,
/// on the right a column, and its dimension is dropped from the result; otherwise the last two
/// dimensions are matrices and those before them broadcast.
Tensor matmul(const Tensor& self, const Tensor& other);
/// input [..., in] times weight [out, in] transposed, plus bias [out]. A weight of one dimension
/// [in] gives a result of shape [...].
Tensor linear(const Tensor& input, const Tensor& weight, OptionalTensor bias = {});

}  // namespace lockstep
