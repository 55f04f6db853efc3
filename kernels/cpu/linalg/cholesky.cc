#include <algorithm>
#include <vector>

#include "core/dispatch/kernel.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"

namespace lockstep::cpu {

namespace {

/// Sets the triangle of a column-major [n, n] that the factor does not have to 0.
void clear_other_triangle(bool upper, int64_t n, double* a) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      if (upper ? i > j : i < j) a[j * n + i] = 0;
    }
  }
}

void cholesky_ex(const Out& factor, const Out& info, const In& self, bool upper,
                 bool check_errors) {
  const int64_t n = self.size(-1);
  const double size = static_cast<double>(n);
  for_each_matrix(matrix_count(self), size * size * size / 3, [&](int64_t begin, int64_t end) {
    std::vector<double> a(static_cast<size_t>(n * n));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(self, i, a.data());
      info.data<int32_t>()[i] = lapack::cholesky(upper, n, a.data());
      clear_other_triangle(upper, n, a.data());
      write_matrix(factor, i, a.data(), n);
    }
  });
  if (check_errors) {
    check_info("linalg_cholesky",
               "is not positive definite: expected positive leading minors, got another sign at "
               "the order that info tells. Add a multiple of the identity",
               info);
  }
}

/// Replaces x [n, columns] by the solution of A y = x, from the Cholesky factor of A.
void solve_by_factor(bool upper, int64_t n, int64_t columns, const double* factor, double* x) {
  for (const bool transposed : {upper, !upper}) {
    lapack::solve_triangular({.upper = upper, .transposed = transposed}, n, columns, factor, x);
  }
}

IntList batch_of(const TensorArg& tensor) {
  return tensor.sizes().first(static_cast<size_t>(tensor.rank - 2));
}

void cholesky_solve(const Out& result, const In& self, const In& factor, bool upper) {
  const int64_t n = result.size(-2), columns = result.size(-1);
  const BatchPlaces of_b(batch_of(self), batch_of(result));
  const BatchPlaces of_factor(batch_of(factor), batch_of(result));
  const double work = 2.0 * static_cast<double>(n * n) * static_cast<double>(columns);
  for_each_matrix(matrix_count(result), work, [&](int64_t begin, int64_t end) {
    std::vector<double> a(static_cast<size_t>(n * n)), x(static_cast<size_t>(n * columns));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(factor, of_factor[i], a.data());
      read_matrix(self, of_b[i], x.data());
      solve_by_factor(upper, n, columns, a.data(), x.data());
      write_matrix(result, i, x.data(), n);
    }
  });
}

void cholesky_inverse(const Out& result, const In& self, bool upper) {
  const int64_t n = self.size(-1);
  const double size = static_cast<double>(n);
  for_each_matrix(matrix_count(self), 2 * size * size * size, [&](int64_t begin, int64_t end) {
    std::vector<double> a(static_cast<size_t>(n * n)), x(a.size());
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(self, i, a.data());
      std::fill(x.begin(), x.end(), 0.0);
      for (int64_t d = 0; d < n; ++d) x[static_cast<size_t>(d * n + d)] = 1;
      solve_by_factor(upper, n, n, a.data(), x.data());
      write_matrix(result, i, x.data(), n);
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "cholesky_solve", cholesky_solve, Strides::kContiguous);
LS_KERNEL(CPU, "cholesky_inverse", cholesky_inverse, Strides::kContiguous);
LS_KERNEL(CPU, "linalg_cholesky_ex", cholesky_ex, Strides::kContiguous);

}  // namespace lockstep::cpu
