#include "dist/simulate/stragglers.h"

#include <cmath>

#include "core/base/check.h"

namespace lockstep::dist {

double normal_quantile(double p) {
  LS_ASSERT(p > 0 && p < 1);
  // The distribution function is monotone: halve the interval until it is exact enough.
  double low = -40, high = 40;
  while (high - low > 1e-10) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double slowest_factor(const Stragglers& stragglers, int64_t ranks, int64_t hosts) {
  const auto n = static_cast<double>(ranks);
  double factor = 1;
  if (ranks > 1) factor += stragglers.deviation * normal_quantile((n - 0.375) / (n + 0.25));
  const double one_is_slow = 1 - std::pow(1 - stragglers.slow_hosts, static_cast<double>(hosts));
  return factor * (1 + (stragglers.slow_factor - 1) * one_is_slow);
}

}  // namespace lockstep::dist
