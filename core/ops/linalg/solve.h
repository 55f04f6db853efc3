#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Systems of linear equations, inverses and determinants of square matrices [..., n, n]. Leading
// dimensions are a batch and broadcast. What factorize.h says of its functions holds here.

/// X with A X = B, or with X A = B if not `left`. B is a batch of matrices [..., n, k], or of
/// vectors if it has one dimension or the sizes of A without the last one. Throws Error for a
/// singular matrix.
Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left = true);
/// linalg_solve with `info` of linalg_lu_factor_ex in place of the error.
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left = true,
                                           bool check_errors = false);
/// X with self X = B, or with X self = B if not `left`, for a triangular matrix of which the other
/// triangle is not read; nor is the diagonal of a `unitriangular` one. A 0 on the diagonal gives
/// infinities and NaNs.
Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left = true,
                               bool unitriangular = false);
/// (X, A) with A X = self, or A^T X = self with `transpose`; A is returned broadcast to the batch.
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper = true,
                                            bool transpose = false, bool unitriangular = false);
/// X with A X = self, given the Cholesky factor input2 of A. The other triangle of the factor is
/// not read, but its gradient is that of A = L L^T, as ATen's: apply `tril` or `triu` to a factor
/// that is not triangular.
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper = false);
/// The inverse of A, given its Cholesky factor.
Tensor cholesky_inverse(const Tensor& self, bool upper = false);

/// The inverse. Throws Error for a singular matrix.
Tensor linalg_inv(const Tensor& A);
/// The inverse, NaN where the matrix is singular, and `info` of linalg_lu_factor_ex.
std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors = false);

/// The determinant; 1 for a matrix without elements. Differentiable at singular matrices, once.
Tensor linalg_det(const Tensor& A);
/// Sign and logarithm of the absolute value of the determinant: 0 and -inf for a singular matrix,
/// where the gradient is NaN.
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A);
/// The logarithm of the determinant, NaN where it is negative.
Tensor logdet(const Tensor& self);
/// The matrices of cofactors: the derivatives of the determinant.
Tensor linalg_cofactors(const Tensor& A);

}  // namespace lockstep
