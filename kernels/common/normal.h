#pragma once

#include <cmath>
#include <limits>

#include "core/base/host_device.h"
#include "kernels/common/one_copy.h"

namespace lockstep {

// The normal distribution and its relatives, computed in double within a few ulp.
// tests/kernels/special_functions_test.cc checks this.

/// e^(x^2) (1 - erf(x)), without overflow for x > 0.
LS_ONE_COPY inline double scaled_erfc(double x) {
  constexpr double kInverseRootPi = 0.56418958354775628695;
  if (x > 25) {
    // Asymptotic, Abramowitz & Stegun 7.1.23; the terms left out are below 1e-17 of the sum.
    const double half = 0.5 / (x * x);
    double sum = 1;
    for (int k = 8; k >= 1; --k) sum = 1 - (2 * k - 1) * half * sum;
    return kInverseRootPi / x * sum;
  }
  const double square = x * x;
  const double lost = std::fma(x, x, -square);  // rounding error of the square
  const double e = std::exp(square);
  return std::isinf(e) ? e : std::fma(e, lost, e) * std::erfc(x);
}

namespace detail {

template <int Count>
LS_HOST_DEVICE inline double polynomial(const double (&factors)[Count], double x) {
  double sum = factors[Count - 1];
  for (int i = Count - 2; i >= 0; --i) sum = sum * x + factors[i];
  return sum;
}

/// The quantile of the standard normal distribution at 1/2 + q, where `tail` is 1/2 - |q|, exactly:
/// Wichura 1988, algorithm AS 241 (PPND16).
LS_ONE_COPY inline double normal_quantile(double q, double tail) {
  constexpr double kA[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                           1.9715909503065514427e3, 1.3731693765509461125e4,
                           4.5921953931549871457e4, 6.7265770927008700853e4,
                           3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double kB[] = {1.0,
                           4.2313330701600911252e1,
                           6.8718700749205790830e2,
                           5.3941960214247511077e3,
                           2.1213794301586595867e4,
                           3.9307895800092710610e4,
                           2.8729085735721942674e4,
                           5.2264952788528545610e3};
  constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                           5.76949722146069140550e0,  3.64784832476320460504e0,
                           1.27045825245236838258e0,  2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kD[] = {1.0,
                           2.05319162663775882187e0,
                           1.67638483018380384940e0,
                           6.89767334985100004550e-1,
                           1.48103976427480074590e-1,
                           1.51986665636164571966e-2,
                           5.47593808499534494600e-4,
                           1.05075007164441684324e-9};
  constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                           1.78482653991729133580e0,  2.96560571828504891230e-1,
                           2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kF[] = {1.0,
                           5.99832206555887937690e-1,
                           1.36929880922735805310e-1,
                           1.48753612908506148525e-2,
                           7.86869131145613259100e-4,
                           1.84631831751005468180e-5,
                           1.42151175831644588870e-7,
                           2.04426310338993978564e-15};
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-std::log(tail));
  const double size = r <= 5 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6)
                             : polynomial(kE, r - 5) / polynomial(kF, r - 5);
  return std::copysign(size, q);
}

}  // namespace detail

/// The inverse of the standard normal distribution function: -inf at 0, inf at 1, NaN outside.
LS_HOST_DEVICE inline double normal_quantile(double p) {
  if (p == 0 || p == 1) return std::copysign(std::numeric_limits<double>::infinity(), p - 0.5);
  if (!(p > 0 && p < 1)) return std::numeric_limits<double>::quiet_NaN();
  return detail::normal_quantile(p - 0.5, p < 0.5 ? p : 1 - p);
}
/// The inverse of erf: infinite at -1 and 1, NaN outside.
LS_HOST_DEVICE inline double inverse_erf(double x) {
  constexpr double kInverseRootTwo = 0.70710678118654752440;
  const double a = std::fabs(x);
  if (a == 1) return std::copysign(std::numeric_limits<double>::infinity(), x);
  if (!(a < 1)) return std::numeric_limits<double>::quiet_NaN();
  return detail::normal_quantile(0.5 * x, 0.5 * (1 - a)) * kInverseRootTwo;
}
/// The standard normal distribution function.
LS_HOST_DEVICE inline double normal_cdf(double x) {
  constexpr double kInverseRootTwo = 0.70710678118654752440;
  return 0.5 * std::erfc(-x * kInverseRootTwo);
}
/// Its logarithm.
LS_HOST_DEVICE inline double log_normal_cdf(double x) {
  constexpr double kInverseRootTwo = 0.70710678118654752440;
  const double t = x * kInverseRootTwo;
  if (x < -1) return std::log(0.5 * scaled_erfc(-t)) - t * t;
  return std::log1p(-0.5 * std::erfc(t));
}

}  // namespace lockstep
