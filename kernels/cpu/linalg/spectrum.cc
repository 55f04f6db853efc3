// Eigenvalues of symmetric matrices and singular values.

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"

namespace lockstep::cpu {

namespace {

double cube(int64_t n) {
  const double size = static_cast<double>(n);
  return size * size * size;
}

/// Throws for the first matrix whose iteration failed.
void check_convergence(const char* op, const std::vector<int32_t>& info) {
  for (size_t i = 0; i < info.size(); ++i) {
    LS_CHECK(info[i] == 0, Error,
             "[{}] the iteration for matrix {} of the batch did not converge: expected all values, "
             "got an error {} of LAPACK. Scale the matrix, or remove repeated values.",
             op, i, info[i]);
  }
}

void eigh(const Out& values, const Out& vectors, const In& a, std::string_view triangle,
          bool compute_v) {
  require_finite_matrices("linalg_eigh", a);
  const int64_t n = a.size(-1);
  const bool upper = triangle == "U" || triangle == "u";
  std::vector<int32_t> info(static_cast<size_t>(matrix_count(a)));
  for_each_matrix(matrix_count(a), 9 * cube(n), [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(n * n)), found(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(a, i, matrix.data());
      info[static_cast<size_t>(i)] = lapack::eigh(compute_v, upper, n, matrix.data(), found.data());
      write_row(values, i, found.data());
      if (compute_v) write_matrix(vectors, i, matrix.data(), n);
    }
  });
  check_convergence("linalg_eigh", info);
}

/// The identity of the leading [rows, columns], column-major: vectors of a matrix without elements.
void set_identity(int64_t rows, int64_t columns, std::vector<double>& a) {
  std::fill(a.begin(), a.end(), 0.0);
  for (int64_t i = 0; i < std::min(rows, columns); ++i) a[static_cast<size_t>(i * rows + i)] = 1;
}

void svd(const Out& u, const Out& s, const Out& vh, const In& a, bool full_matrices,
         bool compute_uv, std::optional<std::string_view>) {
  require_finite_matrices("linalg_svd", a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const auto kind = !compute_uv     ? lapack::SingularVectors::kNone
                    : full_matrices ? lapack::SingularVectors::kAll
                                    : lapack::SingularVectors::kReduced;
  const int64_t columns = full_matrices ? m : k, rows = full_matrices ? n : k;
  const int64_t count = matrix_count(a);
  std::vector<int32_t> info(static_cast<size_t>(count));
  for_each_matrix(count, 20 * cube(std::max(m, n)), [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(m * n)), found(static_cast<size_t>(k));
    std::vector<double> left(static_cast<size_t>(compute_uv ? m * columns : 0));
    std::vector<double> right(static_cast<size_t>(compute_uv ? rows * n : 0));
    if (k == 0 && compute_uv) {
      set_identity(m, columns, left);
      set_identity(rows, n, right);
    }
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(a, i, matrix.data());
      info[static_cast<size_t>(i)] =
          lapack::svd(kind, m, n, matrix.data(), found.data(), left.data(), right.data());
      write_row(s, i, found.data());
      if (!compute_uv) continue;
      write_matrix(u, i, left.data(), m);
      write_matrix(vh, i, right.data(), rows);
    }
  });
  check_convergence("linalg_svd", info);
}

}  // namespace

LS_KERNEL(CPU, "_linalg_eigh", eigh, Strides::kContiguous);
LS_KERNEL(CPU, "_linalg_svd", svd, Strides::kContiguous);

}  // namespace lockstep::cpu
