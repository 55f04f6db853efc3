#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dispatch/kernel.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"

namespace lockstep::cpu {

namespace {

/// Terms of the Taylor series: for a norm of at most 1/2 the next one is below 2^-80.
constexpr int kTerms = 17;

/// The largest sum of absolute values in a column.
double norm_of(int64_t n, const std::vector<double>& a) {
  double norm = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::fabs(a[static_cast<size_t>(j * n + i)]);
    norm = std::isnan(sum) ? sum : std::max(norm, sum);
    if (std::isnan(norm)) break;
  }
  return norm;
}

/// Replaces a by its exponential: exp(a) = exp(a / 2^k)^(2^k), with the series for the inner one.
void exponential(int64_t n, std::vector<double>& a, std::vector<double>& sum,
                 std::vector<double>& product) {
  const double norm = norm_of(n, a);
  if (!std::isfinite(norm)) return std::fill(a.begin(), a.end(), std::nan(""));
  int doublings = 0;
  if (norm > 0.5) doublings = std::max(0, std::ilogb(norm) + 2);
  for (double& element : a) element = std::ldexp(element, -doublings);
  const auto add_identity = [n](std::vector<double>& to) {
    for (int64_t i = 0; i < n; ++i) to[static_cast<size_t>(i * n + i)] += 1;
  };
  // Horner: 1 + a (1 + a/2 (1 + a/3 (...))).
  std::fill(sum.begin(), sum.end(), 0.0);
  add_identity(sum);
  for (int term = kTerms; term > 0; --term) {
    lapack::product(n, n, n, a.data(), sum.data(), product.data());
    for (double& element : product) element /= term;
    add_identity(product);
    std::swap(sum, product);
  }
  for (int i = 0; i < doublings; ++i) {
    lapack::product(n, n, n, sum.data(), sum.data(), product.data());
    std::swap(sum, product);
  }
  std::swap(a, sum);
}

void matrix_exp(const Out& result, const In& self) {
  const int64_t n = self.size(-1);
  const double size = static_cast<double>(n);
  for_each_matrix(matrix_count(self), 40 * size * size * size, [&](int64_t begin, int64_t end) {
    std::vector<double> a(static_cast<size_t>(n * n)), sum(a.size()), product(a.size());
    for (int64_t i = begin; i < end; ++i) {
      read_matrix(self, i, a.data());
      exponential(n, a, sum, product);
      write_matrix(result, i, a.data(), n);
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "linalg_matrix_exp", matrix_exp, Strides::kContiguous);

}  // namespace lockstep::cpu
