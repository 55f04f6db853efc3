#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Factorizations of matrices [..., m, n] by LAPACK, whose conventions they have (signs of qr,
// pivots of lu). All leading dimensions are a batch and may be empty, as may matrices. Floating
// dtypes; computed in f64 and rounded once, with the same bits on any machine and number of
// threads. Without LAPACK in the build all throw Error.
//
// `info` (int32, one number per matrix) is 0 where the factorization succeeded; functions without
// `_ex` throw Error naming the first matrix where it is not.

/// The lower factor L of A = L L^T, or the upper one of A = U^T U. Only one triangle of A is read:
/// the gradient is that of a symmetric change of A.
Tensor linalg_cholesky(const Tensor& self, bool upper = false);
/// linalg_cholesky with `info`: the order of the first leading minor that is not positive.
std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper = false,
                                              bool check_errors = false);

/// (P, L, U) with A = P L U: a permutation [m, m], the unit lower trapezium [m, k] and the upper
/// trapezium [k, n], where k = min(m, n). `pivot` must be true: LAPACK always exchanges rows.
std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot = true);
/// L and U in one matrix [m, n] (the diagonal is U's), and `pivots` [k] (int32): row i was
/// exchanged with row pivots[i], counted from 1.
std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot = true);
/// linalg_lu_factor with `info`: the place of the first 0 on U's diagonal, counted from 1.
std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, bool pivot = true,
                                                       bool check_errors = false);
/// (P, L, U) from the results of linalg_lu_factor; those not asked for have no elements.
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                             bool unpack_data = true, bool unpack_pivots = true);

/// (Q, R) with A = Q R, orthogonal Q and upper triangular R. `mode` is "reduced" (Q [m, k], R [k,
/// n]), "complete" (Q [m, m], R [m, n]) or "r" (R [k, n] alone, without a derivative).
std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode = "reduced");

/// Eigenvalues of symmetric matrices in ascending order, and eigenvectors in columns. Only the
/// triangle that `UPLO` names ("L" or "U") is read. The gradient is that of a symmetric change and
/// is infinite where eigenvalues are equal, if it depends on the vectors.
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO = "L");
/// The eigenvalues alone.
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO = "L");

/// (U, S, Vh) with A = U diag(S) Vh and singular values in descending order: U [m, k] and Vh [k,
/// n], or [m, m] and [n, n] with `full_matrices`. The gradient may not depend on the signs of the
/// vectors, and is infinite where singular values are equal or 0, if it depends on the vectors.
/// `driver` must be absent: other algorithms exist on GPUs only.
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices = true,
                                              std::optional<std::string_view> driver = {});
/// The singular values alone.
Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver = {});

}  // namespace lockstep
