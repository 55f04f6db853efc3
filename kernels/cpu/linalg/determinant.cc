#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"

namespace lockstep::cpu {

namespace {

double cube(int64_t n) {
  const double size = static_cast<double>(n);
  return size * size * size;
}

/// -1 if the exchanges of an LU factorization are odd, else 1.
double sign_of(const int32_t* pivots, int64_t n) {
  double sign = 1;
  for (int64_t i = 0; i < n; ++i) {
    if (pivots[i] != i + 1) sign = -sign;
  }
  return sign;
}

double product_of_diagonal(const double* a, int64_t n) {
  double product = 1;
  for (int64_t i = 0; i < n; ++i) product *= a[i * n + i];
  return product;
}

void write_number(const Out& to, int64_t index, double value) {
  with_floating_type(to.dtype, [&]<class T>() { to.data<T>()[index] = convert<T>(value); });
}

/// Factorizes each matrix into `lu` and `pivots` and calls finish(index, factors, pivots).
template <class Finish>
void factorize_each(const Out& lu, const Out& pivots, const In& a, const Finish& finish) {
  const int64_t n = a.size(-1);
  for_each_matrix(matrix_count(a), cube(n), [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(n * n));
    for (int64_t i = begin; i < end; ++i) {
      int32_t* exchanged = pivots.data<int32_t>() + i * n;
      read_matrix(a, i, matrix.data());
      lapack::lu(n, n, matrix.data(), exchanged);
      write_matrix(lu, i, matrix.data(), n);
      finish(i, matrix.data(), exchanged);
    }
  });
}

void det(const Out& result, const Out& lu, const Out& pivots, const In& a) {
  const int64_t n = a.size(-1);
  factorize_each(lu, pivots, a, [&](int64_t i, const double* factors, const int32_t* exchanged) {
    write_number(result, i, sign_of(exchanged, n) * product_of_diagonal(factors, n));
  });
}

void slogdet(const Out& sign, const Out& logabsdet, const Out& lu, const Out& pivots, const In& a) {
  const int64_t n = a.size(-1);
  factorize_each(lu, pivots, a, [&](int64_t i, const double* factors, const int32_t* exchanged) {
    double direction = sign_of(exchanged, n);
    double sum = 0;
    for (int64_t d = 0; d < n; ++d) {
      const double u = factors[d * n + d];
      direction *= u > 0 ? 1.0 : u < 0 ? -1.0 : u;  // 0 and NaN stay
      sum += std::log(std::fabs(u));
    }
    write_number(sign, i, direction);
    write_number(logabsdet, i, sum);
  });
}

/// The cofactors of the matrix u diag(values) vt: det(u) det(vt) u diag(products) vt, where each
/// product leaves out one value. Correct for matrices of any rank.
void cofactors_of_svd(int64_t n, std::vector<double>& matrix) {
  std::vector<double> values(static_cast<size_t>(n)), u(matrix.size()), vt(matrix.size());
  lapack::svd(lapack::SingularVectors::kAll, n, n, matrix.data(), values.data(), u.data(),
              vt.data());
  double sign = 1;
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  for (const std::vector<double>* vectors : {&u, &vt}) {
    std::vector<double> factors = *vectors;
    lapack::lu(n, n, factors.data(), pivots.data());
    const double det = sign_of(pivots.data(), n) * product_of_diagonal(factors.data(), n);
    sign *= det < 0 ? -1 : 1;
  }
  for (int64_t j = 0; j < n; ++j) {
    double others = sign;
    for (int64_t i = 0; i < n; ++i) {
      if (i != j) others *= values[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < n; ++i) u[static_cast<size_t>(j * n + i)] *= others;
  }
  lapack::product(n, n, n, u.data(), vt.data(), matrix.data());
}

/// The smallest ratio of pivots for which the inverse of the f64 factors is still precise in f32.
constexpr double kInvertible = 1e-6;

void cofactors(const Out& result, const In& a) {
  const int64_t n = a.size(-1);
  for_each_matrix(matrix_count(a), 2 * cube(n), [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(n * n)), flipped(matrix.size());
    std::vector<int32_t> pivots(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(a, i, matrix.data());
      const bool finite =
          std::all_of(matrix.begin(), matrix.end(), [](double x) { return std::isfinite(x); });
      std::vector<double> factors = matrix;
      lapack::lu(n, n, factors.data(), pivots.data());
      double least = 0, most = 0;
      for (int64_t d = 0; d < n; ++d) {
        const double pivot = std::fabs(factors[static_cast<size_t>(d * n + d)]);
        least = d == 0 ? pivot : std::min(least, pivot);
        most = std::max(most, pivot);
      }
      if (!finite) {
        std::fill(matrix.begin(), matrix.end(), std::nan(""));
      } else if (least > kInvertible * most) {
        const double det = sign_of(pivots.data(), n) * product_of_diagonal(factors.data(), n);
        lapack::inverse_lu(n, factors.data(), pivots.data());
        for (int64_t r = 0; r < n; ++r) {
          for (int64_t c = 0; c < n; ++c) {
            matrix[static_cast<size_t>(c * n + r)] = det * factors[static_cast<size_t>(r * n + c)];
          }
        }
      } else {
        cofactors_of_svd(n, matrix);
      }
      write_matrix(result, i, matrix.data(), n);
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "_linalg_det", det, Strides::kContiguous);
LS_KERNEL(CPU, "_linalg_slogdet", slogdet, Strides::kContiguous);
LS_KERNEL(CPU, "_linalg_cofactors", cofactors, Strides::kContiguous);

}  // namespace lockstep::cpu
