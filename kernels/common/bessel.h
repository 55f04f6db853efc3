#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"
#include "kernels/common/one_copy.h"

namespace lockstep {

// Bessel functions of the orders 0 and 1, computed in double: within a few ulp, j0 and j1 within a
// few units of 1e-16 near their zeros. tests/kernels/special_functions_test.cc checks this.

namespace detail {

/// 1 / (k! (k + Order)!) for k = 0, 1, ....
template <int Order>
struct BesselSeries {
  static constexpr int kTerms = 50;
  double factors[kTerms] = {};
  constexpr BesselSeries() {
    double factor = 1;  // Order is 0 or 1, so that Order! is 1
    for (int k = 0; k < kTerms; ++k) {
      factors[k] = factor;
      factor /= static_cast<double>((k + 1)) * static_cast<double>(k + 1 + Order);
    }
  }
};

/// I_Order(x) / (x / 2)^Order for |x| <= kSeriesEnd: the power series, Abramowitz & Stegun 9.6.10.
/// All of its terms are positive.
template <int Order>
LS_HOST_DEVICE inline double bessel_i_series(double x) {
  constexpr BesselSeries<Order> kSeries;
  const double square = 0.25 * x * x;
  double sum = 0;
  // The terms left out are below 1e-17 of the sum.
  for (int k = (std::fabs(x) < 8 ? 25 : BesselSeries<Order>::kTerms) - 1; k >= 0; --k) {
    sum = sum * square + kSeries.factors[k];
  }
  return sum;
}
/// e^-x I_Order(x) for x > kSeriesEnd: the asymptotic expansion, Abramowitz & Stegun 9.7.1.
template <int Order>
LS_HOST_DEVICE inline double scaled_bessel_i_far(double x) {
  constexpr double kTwoPi = 6.28318530717958647692;
  double term = 1;
  double sum = 1;
  for (int k = 1; k <= 20; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - 4 * Order) / (8 * k * x);
    sum += term;
  }
  return sum / std::sqrt(kTwoPi * x);
}

inline constexpr double kSeriesEnd = 30;

template <int Order>
LS_ONE_COPY inline double scaled_bessel_i(double x) {
  const double a = std::fabs(x);
  const double near = bessel_i_series<Order>(a <= kSeriesEnd ? a : 0) * std::exp(-a);
  const double size =
      a <= kSeriesEnd ? (Order == 1 ? near * 0.5 * a : near) : scaled_bessel_i_far<Order>(a);
  return Order == 1 ? std::copysign(size, x) : size;
}
template <int Order>
LS_ONE_COPY inline double bessel_i(double x) {
  const double a = std::fabs(x);
  const double near = bessel_i_series<Order>(a <= kSeriesEnd ? a : 0);
  const double root = std::exp(0.5 * a);  // e^a itself may overflow when the result does not
  const double size = a <= kSeriesEnd ? (Order == 1 ? near * 0.5 * a : near)
                                      : scaled_bessel_i_far<Order>(a) * root * root;
  return Order == 1 ? std::copysign(size, x) : size;
}

}  // namespace detail

/// The modified Bessel functions of the first kind I_0 and I_1, and the same times e^-|x|.
LS_HOST_DEVICE inline double bessel_i0(double x) {
  return x != x ? x : (std::isinf(x) ? std::fabs(x) : detail::bessel_i<0>(x));
}
LS_HOST_DEVICE inline double bessel_i1(double x) {
  return x != x || std::isinf(x) ? x : detail::bessel_i<1>(x);
}
LS_HOST_DEVICE inline double bessel_i0e(double x) {
  return x != x ? x : detail::scaled_bessel_i<0>(x);
}
LS_HOST_DEVICE inline double bessel_i1e(double x) {
  return x != x ? x : detail::scaled_bessel_i<1>(x);
}

/// The Bessel functions of the first kind J_0 and J_1, those of the C library.
LS_HOST_DEVICE inline double bessel_j0(double x) { return ::j0(x); }
LS_HOST_DEVICE inline double bessel_j1(double x) { return ::j1(x); }

}  // namespace lockstep
