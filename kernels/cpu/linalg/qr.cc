#include <algorithm>
#include <vector>

#include "core/dispatch/kernel.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"

namespace lockstep::cpu {

namespace {

/// R: the upper triangle of the factorized [m, n], with as many rows as the result has.
void take_upper(const std::vector<double>& a, int64_t m, int64_t n, int64_t rows,
                std::vector<double>& r) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      r[static_cast<size_t>(j * rows + i)] = i <= j ? a[static_cast<size_t>(j * m + i)] : 0.0;
    }
  }
}

void qr(const Out& q, const Out& r, const In& a, std::string_view mode) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const int64_t rows = r.size(-2);
  const int64_t columns = mode == "r" ? 0 : q.size(-1);
  const double work = 4.0 * static_cast<double>(m * n) * static_cast<double>(k);
  for_each_matrix(matrix_count(a), work, [&](int64_t begin, int64_t end) {
    std::vector<double> matrix(static_cast<size_t>(m * std::max(n, columns)));
    std::vector<double> tau(static_cast<size_t>(k)), upper(static_cast<size_t>(rows * n));
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(a, i, matrix.data());
      lapack::qr(m, n, matrix.data(), tau.data());
      take_upper(matrix, m, n, rows, upper);
      write_matrix(r, i, upper.data(), rows);
      if (columns == 0) continue;
      lapack::householder_product(m, columns, k, matrix.data(), tau.data());
      write_matrix(q, i, matrix.data(), m);
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "linalg_qr", qr, Strides::kContiguous);

}  // namespace lockstep::cpu
