#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

// Small linear algebra, composed of the operators in matmul.h, view.h and pointwise.h.

/// Sum of the diagonal of a matrix. Integers sum to int64.
Tensor trace(const Tensor& self);
/// Outer product [n, m] of self [n] and vec2 [m].
Tensor outer(const Tensor& self, const Tensor& vec2);
/// beta * self + alpha * outer(vec1, vec2); self broadcasts to [n, m].
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1,
            const Scalar& alpha = 1);
/// beta * self + alpha * sum over b of batch1[b] batch2[b] for batch1 [b, n, k] and batch2 [b, k,
/// m]; self broadcasts to [n, m]. With integer tensors beta and alpha are truncated.
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
              const Scalar& beta = 1, const Scalar& alpha = 1);
/// Cross product of vectors of 3 elements along `dim`; the other dimensions broadcast.
Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim = -1);
/// Cross product along `dim`, by default the first dimension of size 3.
Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim = std::nullopt);
/// The n-th difference of adjacent elements along `dim` of cat(prepend, self, append). For bools,
/// whether adjacent elements differ.
Tensor diff(const Tensor& self, int64_t n = 1, int64_t dim = -1, OptionalTensor prepend = {},
            OptionalTensor append = {});

/// Einstein summation: "ij,jk->ik" is a matrix product. Letters name dimensions; a letter repeated
/// in one operand takes its diagonal, letters absent from the result are summed over, and "..."
/// stands for leading dimensions that broadcast. Without "->" the result has the dimensions of
/// "...", then the letters that occur once in alphabetical order (capitals first). Operands are
/// contracted from left to right, or in the order of `path`: pairs of positions in the list of
/// operands, where each result is appended to the list.
Tensor einsum(std::string_view equation, TensorList tensors,
              std::optional<IntList> path = std::nullopt);

}  // namespace lockstep
