#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

namespace detail {

/// The unevaluated sum high + low, with |low| at most half an ulp of high: about 106 bits.
struct TwoDoubles {
  double high, low;
};

/// Double-double product (Dekker 1971); fma gives the rounding error of high * high exactly.
LS_HOST_DEVICE inline TwoDoubles product(const TwoDoubles& a, const TwoDoubles& b) {
  const double high = a.high * b.high;
  const double low = std::fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high);
  const double sum = high + low;
  return {sum, low - (sum - high)};
}

}  // namespace detail

/// 1 - beta^step: the bias correction of a moving average that started at zero, after `step` values
/// (Kingma & Ba 2015, section 3). beta in [0, 1], step a whole number in [0, 2^63). The power is
/// computed by repeated squaring with operations that round alike on every device, unlike std::pow;
/// its relative error, below step 2^-100, vanishes in the rounding to f64.
LS_HOST_DEVICE inline double bias_correction(double beta, double step) {
  detail::TwoDoubles power{1, 0};
  detail::TwoDoubles square{beta, 0};
  for (auto left = static_cast<uint64_t>(step); left != 0; left /= 2) {
    if (left % 2 != 0) power = detail::product(power, square);
    square = detail::product(square, square);
  }
  return 1 - power.high;
}

}  // namespace lockstep
