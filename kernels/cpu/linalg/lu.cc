#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/check.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"

namespace lockstep::cpu {

namespace {

double lu_work(int64_t m, int64_t n) {
  const double shorter = static_cast<double>(std::min(m, n));
  return static_cast<double>(std::max(m, n)) * shorter * shorter;
}

void lu_factor_ex(const Out& lu, const Out& pivots, const Out& info, const In& a, bool,
                  bool check_errors) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  for_each_matrix(matrix_count(a), lu_work(m, n), [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(m * n));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(a, i, matrix.data());
      info.data<int32_t>()[i] = lapack::lu(m, n, matrix.data(), pivots.data<int32_t>() + i * k);
      write_matrix(lu, i, matrix.data(), m);
    }
  });
  if (check_errors) {
    check_info("linalg_lu_factor",
               "has a factor U that is not invertible: expected a diagonal without 0, got one at "
               "the place that info tells",
               info);
  }
}

/// The row of P L U that each row of L U becomes: applies the exchanges to 0, 1, ....
void permutation_of(const int32_t* pivots, int64_t count, std::vector<int64_t>& rows) {
  std::iota(rows.begin(), rows.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::swap(rows[static_cast<size_t>(i)], rows[static_cast<size_t>(pivots[i] - 1)]);
  }
}

void check_pivots(const In& pivots, int64_t m) {
  for (int64_t i = 0; i < pivots.numel; ++i) {
    const int32_t pivot = pivots.data<int32_t>()[i];
    LS_CHECK(pivot >= 1 && pivot <= m, IndexError,
             "[lu_unpack] a pivot is not a row: expected numbers in [1, {}], got {}.", m, pivot);
  }
}

template <class T>
void write_factors(const Out& lower, const Out& upper, const T* lu, int64_t index) {
  const int64_t m = lower.size(-2), k = lower.size(-1), n = upper.size(-1);
  T* l = lower.data<T>() + index * m * k;
  T* u = upper.data<T>() + index * k * n;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) l[i * k + j] = i > j ? lu[i * n + j] : convert<T>(i == j);
  }
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) u[i * n + j] = i <= j ? lu[i * n + j] : convert<T>(0.0);
  }
}

void lu_unpack(const Out& p, const Out& l, const Out& u, const In& lu, const In& pivots,
               bool unpack_data, bool unpack_pivots) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const double work = static_cast<double>(m) * static_cast<double>(m + n);
  if (unpack_pivots) check_pivots(pivots, m);
  with_floating_type(lu.dtype, [&]<class T>() {
    for_each_matrix(matrix_count(lu), work, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> rows(static_cast<size_t>(m));
      for (int64_t i = begin; i < end; ++i) {
        if (unpack_data) write_factors(l, u, lu.data<T>() + i * m * n, i);
        if (!unpack_pivots) continue;
        T* to = p.data<T>() + i * m * m;
        std::fill(to, to + m * m, convert<T>(0.0));
        permutation_of(pivots.data<int32_t>() + i * k, k, rows);
        for (int64_t row = 0; row < m; ++row) {
          to[rows[static_cast<size_t>(row)] * m + row] = convert<T>(1.0);
        }
      }
    });
  });
}

}  // namespace

LS_KERNEL(CPU, "linalg_lu_factor_ex", lu_factor_ex, Strides::kContiguous);
LS_KERNEL(CPU, "lu_unpack", lu_unpack, Strides::kContiguous);

}  // namespace lockstep::cpu
