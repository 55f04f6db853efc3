#pragma once

#include <cstdint>

/// Factorizations by LAPACK; no other file depends on the library. Matrices are column-major f64
/// without gaps between columns. Every call runs on the calling thread alone and gives the bits of
/// the reference implementation. All throw Error if Lockstep was built without LAPACK, or if a size
/// exceeds 2^31 - 1. Empty matrices are allowed.
namespace lockstep::cpu::lapack {

/// Replaces one triangle of `a` [n, n] by the Cholesky factor of the symmetric matrix whose
/// elements that triangle has. Returns 0, or the order of the leading minor that is not positive.
int32_t cholesky(bool upper, int64_t n, double* a);

/// Replaces `a` [m, n] by the factors L and U of an LU factorization with row exchanges:
/// `pivots[i]` counts from 1 and says which row was exchanged with row i. Returns 0, or i if the
/// i-th diagonal element of U is exactly 0.
int32_t lu(int64_t m, int64_t n, double* a, int32_t* pivots);
/// Replaces `b` [n, k] by the solution of a x = b, or of a^T x = b, from the result of `lu`.
void solve_lu(bool transposed, int64_t n, int64_t k, const double* a, const int32_t* pivots,
              double* b);
/// Replaces the result of `lu` by the inverse. The diagonal of U must not contain 0.
void inverse_lu(int64_t n, double* a, const int32_t* pivots);

/// Which system of equations a triangular matrix a makes.
struct Triangle {
  bool left = true;  ///< a x = b, else x a = b
  bool upper = true;
  bool unit = false;        ///< the diagonal counts as ones and is not read
  bool transposed = false;  ///< a^T stands in the place of a; `upper` is about a itself
};
/// Replaces `b` [m, k] by the solution for the triangular matrix `a`: [m, m] if it stands on the
/// left, else [k, k].
void solve_triangular(const Triangle& triangle, int64_t m, int64_t k, const double* a, double* b);

/// Replaces `a` [m, n] by R in its upper triangle, with Householder's vectors below it and `tau`
/// [min(m, n)].
void qr(int64_t m, int64_t n, double* a, double* tau);
/// Replaces the first columns of `a` [m, columns], which hold `count` of Householder's vectors, by
/// the first columns of Q; columns <= m.
void householder_product(int64_t m, int64_t columns, int64_t count, double* a, const double* tau);

/// Eigenvalues `values` [n] in ascending order of the symmetric matrix of which one triangle of `a`
/// [n, n] has the elements; with `vectors` it replaces `a` by the eigenvectors, one per column.
/// Returns 0, or a positive number if the iteration did not converge.
int32_t eigh(bool vectors, bool upper, int64_t n, double* a, double* values);

/// How much of the singular vectors to compute.
enum class SingularVectors : uint8_t { kNone, kReduced, kAll };
/// Singular values `values` [min(m, n)] in descending order of `a` [m, n], which is overwritten,
/// and the singular vectors `u` [m, m or min(m, n)] and `vt` [n or min(m, n), n]. Returns 0, or a
/// positive number if the iteration did not converge.
int32_t svd(SingularVectors vectors, int64_t m, int64_t n, double* a, double* values, double* u,
            double* vt);

/// c [m, n] = a [m, k] b [k, n].
void product(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c);

}  // namespace lockstep::cpu::lapack
