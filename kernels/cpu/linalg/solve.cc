#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dispatch/kernel.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"

namespace lockstep::cpu {

namespace {

constexpr const char* kSingular =
    "is singular: expected an invertible matrix, got a pivot of exactly 0";

IntList batch_of(const TensorArg& tensor) {
  return tensor.sizes().first(static_cast<size_t>(tensor.rank - 2));
}

double cube(int64_t n) {
  const double size = static_cast<double>(n);
  return size * size * size;
}

void solve_triangular(const Out& result, const In& a, const In& b, bool upper, bool left,
                      bool unitriangular) {
  const int64_t n = a.size(-1), rows = result.size(-2), columns = result.size(-1);
  const BatchPlaces of_a(batch_of(a), batch_of(result)), of_b(batch_of(b), batch_of(result));
  const double work = static_cast<double>(rows * columns) * static_cast<double>(n);
  for_each_matrix(matrix_count(result), work, [&](int64_t begin, int64_t end) {
    std::vector<double> triangle(static_cast<size_t>(n * n));
    std::vector<double> x(static_cast<size_t>(rows * columns));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(a, of_a[i], triangle.data());
      read_matrix(b, of_b[i], x.data());
      lapack::solve_triangular({.left = left, .upper = upper, .unit = unitriangular}, rows, columns,
                               triangle.data(), x.data());
      write_matrix(result, i, x.data(), rows);
    }
  });
}

/// Turns a column-major [rows, columns] into a column-major [columns, rows].
void transpose_into(const std::vector<double>& from, int64_t rows, int64_t columns,
                    std::vector<double>& to) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      to[static_cast<size_t>(i * columns + j)] = from[static_cast<size_t>(j * rows + i)];
    }
  }
}

/// x a = b as a^T x^T = b^T, from the factors of a.
void solve_from_right(int64_t n, int64_t rows, const double* lu, const int32_t* pivots,
                      std::vector<double>& x, std::vector<double>& flipped) {
  transpose_into(x, rows, n, flipped);
  lapack::solve_lu(true, n, rows, lu, pivots, flipped.data());
  transpose_into(flipped, n, rows, x);
}

void solve_ex(const Out& x, const Out& lu, const Out& pivots, const Out& info, const In& a,
              const In& b, bool left, bool check_errors) {
  const int64_t n = a.size(-1), rows = x.size(-2), columns = x.size(-1);
  // The factors in f64: those in `lu` are rounded to its dtype.
  std::vector<double> factors(static_cast<size_t>(a.numel));
  for_each_matrix(matrix_count(a), cube(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double* matrix = factors.data() + i * n * n;
      read_matrix(a, i, matrix);
      info.data<int32_t>()[i] = lapack::lu(n, n, matrix, pivots.data<int32_t>() + i * n);
      write_matrix(lu, i, matrix, n);
    }
  });
  if (check_errors) check_info("linalg_solve", kSingular, info);
  const BatchPlaces of_a(batch_of(a), batch_of(x)), of_b(batch_of(b), batch_of(x));
  for_each_matrix(matrix_count(x), cube(n), [&](int64_t begin, int64_t end) {
    std::vector<double> y(static_cast<size_t>(rows * columns)), flipped(left ? 0 : y.size());
    for (int64_t i = begin; i < end; ++i) {
      const double* matrix = factors.data() + of_a[i] * n * n;
      const int32_t* exchanged = pivots.data<int32_t>() + of_a[i] * n;
      read_matrix(b, of_b[i], y.data());
      if (left) {
        lapack::solve_lu(false, n, columns, matrix, exchanged, y.data());
      } else {
        solve_from_right(n, rows, matrix, exchanged, y, flipped);
      }
      write_matrix(x, i, y.data(), rows);
    }
  });
}

void inv_ex(const Out& inverse, const Out& info, const In& a, bool check_errors) {
  const int64_t n = a.size(-1);
  for_each_matrix(matrix_count(a), 2 * cube(n), [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(n * n));
    std::vector<int32_t> pivots(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(a, i, matrix.data());
      const int32_t found = lapack::lu(n, n, matrix.data(), pivots.data());
      if (found == 0) {
        lapack::inverse_lu(n, matrix.data(), pivots.data());
      } else {
        std::fill(matrix.begin(), matrix.end(), std::nan(""));
      }
      info.data<int32_t>()[i] = found;
      write_matrix(inverse, i, matrix.data(), n);
    }
  });
  if (check_errors) check_info("linalg_inv", kSingular, info);
}

}  // namespace

LS_KERNEL(CPU, "linalg_solve_triangular", solve_triangular, Strides::kContiguous);
LS_KERNEL(CPU, "_linalg_solve_ex", solve_ex, Strides::kContiguous);
LS_KERNEL(CPU, "linalg_inv_ex", inv_ex, Strides::kContiguous);

}  // namespace lockstep::cpu
