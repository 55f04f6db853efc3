#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

// Small linear algebra, made of the operators in matmul.h, view.h and pointwise.h.

/// Sum of the diagonal of a matrix. Integers sum to int64.
Tensor trace(const Tensor& self);
/// [n, m]: self [n] times vec2 [m], each with each.
Tensor outer(const Tensor& self, const Tensor& vec2);
/// beta * self + alpha * outer(vec1, vec2); self broadcasts to [n, m].
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1,
            const Scalar& alpha = 1);
/// beta * self + alpha * sum over b of batch1[b] batch2[b] for batch1 [b, n, k] and batch2 [b, k,
/// m]; self broadcasts to [n, m]. Integers cut the fractions of beta and alpha off.
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
              const Scalar& beta = 1, const Scalar& alpha = 1);
/// Cross product of vectors of 3 along `dim`; the other dimensions broadcast.
Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim = -1);
/// The same; without `dim` along the first dimension of size 3.
Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim = std::nullopt);
/// The difference of neighbours along `dim`, taken n times, of self with `prepend` in front and
/// `append` behind. Bools give whether neighbours differ.
Tensor diff(const Tensor& self, int64_t n = 1, int64_t dim = -1, OptionalTensor prepend = {},
            OptionalTensor append = {});

/// Einstein's summation: "ij,jk->ik" is a product of matrices. Letters name dimensions; a letter
/// repeated in one operand takes its diagonal, letters absent from the result are summed over, and
/// "..." stands for the leading dimensions that broadcast. Without "->" the result has the
/// dimensions of "...", then the letters that occur once in alphabetical order (capitals first).
/// Operands are contracted from left to right, or in the order of `path`: pairs of positions, the
/// result of each going to the end of the list.
Tensor einsum(std::string_view equation, TensorList tensors,
              std::optional<IntList> path = std::nullopt);

}  // namespace lockstep
