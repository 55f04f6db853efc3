#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/host_device.h"
#include "kernels/common/one_copy.h"

namespace lockstep {

namespace detail {

inline constexpr double kPi = 3.14159265358979323846;

/// Hurwitz zeta function, the sum over k >= 0 of (q + k)^-s, for s > 1 and q > 0: the first terms
/// are summed directly, the rest by the Euler-Maclaurin formula (Johansson 2015, "Rigorous
/// high-precision computation of the Hurwitz zeta function").
LS_ONE_COPY inline double zeta_of_positive(double s, double q) {
  // B_2j / (2j)!
  constexpr double kFactors[] = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
                                 -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
                                 1.0 / 74724249600};
  double sum = 0;
  double a = q;
  for (; a < 10 + s; a += 1) {
    const double power = std::pow(a, -s);
    sum += power;
    // For a large s the rest is below the sum's rounding error.
    if (power * (a / (s - 1) + 1) <= sum * 1e-17) return sum;
  }
  const double power = std::pow(a, -s);
  sum += power * a / (s - 1) + 0.5 * power;
  double term = power / a;
  double rising = s;
  for (int j = 0; j < 7; ++j) {
    sum += kFactors[j] * rising * term;
    rising *= (s + 2 * j + 1) * (s + 2 * j + 2);
    term /= a * a;
  }
  return sum;
}

/// Hurwitz zeta function for any q except 0, -1, ... and, below 0, whole s: the terms with q + k <
/// 0 form a finite piece of the sum that starts at their mirror image.
LS_HOST_DEVICE inline double zeta(double s, double q) {
  if (q > 0) return zeta_of_positive(s, q);
  const double below = std::ceil(-q);
  const double first = q + below;  // in (0, 1)
  const double mirrored = 1 - first;
  const double negative = zeta_of_positive(s, mirrored) - zeta_of_positive(s, mirrored + below);
  return zeta_of_positive(s, first) + (std::fmod(s, 2) == 0 ? negative : -negative);
}

}  // namespace detail

/// log |gamma(x)|; infinite at 0, -1, -2, ... . Unlike std::lgamma it does not write the global
/// signgam.
LS_HOST_DEVICE inline double log_gamma(double x) {
#if defined(__CUDA_ARCH__)
  return ::lgamma(x);
#else
  int sign = 0;
  return ::lgamma_r(x, &sign);
#endif
}

/// The derivative of log gamma: -inf at 0, inf at -0, NaN at -1, -2, ....
LS_HOST_DEVICE inline double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double result = 0;
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
    // Reflection; the tangent of the fraction keeps the digits that pi x would lose.
    result = -detail::kPi / std::tan(detail::kPi * (x - std::floor(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  // Asymptotic: log x - 1/(2x) - sum of B_2j / (2j x^2j).
  constexpr double kFactors[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const double square = 1 / (x * x);
  double series = 0;
  for (int j = 6; j >= 0; --j) series = (series + kFactors[j]) * square;
  return result + std::log(x) - 0.5 / x - series;
}

/// The n-th derivative of digamma for n >= 1: infinite at 0, -1, -2, ....
LS_ONE_COPY inline double polygamma(int64_t n, double x) {
  if (std::isnan(x) || x == -std::numeric_limits<double>::infinity()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double sign = n % 2 == 0 ? -1 : 1;
  if (x <= 0 && x == std::floor(x)) return sign * std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return sign * 0.0;
  return sign * std::tgamma(static_cast<double>(n) + 1) *
         detail::zeta(static_cast<double>(n) + 1, x);
}

/// Hurwitz zeta function: the sum over k >= 0 of (q + k)^-s. Infinite for s = 1 and for q = 0, -1,
/// -2, ...; NaN for s < 1 and for a negative q whose powers are not real.
LS_HOST_DEVICE inline double hurwitz_zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return std::numeric_limits<double>::quiet_NaN();
  if (s == 1) return std::numeric_limits<double>::infinity();
  if (q <= 0) {
    if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
    if (s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
  }
  return std::isinf(q) ? 0.0 : detail::zeta(s, q);
}

}  // namespace lockstep
