#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace lockstep {

/// Largest error in ulp over floats of both signs in [lowest, highest]. Tests every 997th bit
/// pattern: all exponents, with many mantissas each.
template <class F, class G>
double worst_error(F approximation, G exact, float lowest, float highest) {
  double worst = 0;
  for (uint32_t bits = 0; bits < 0x7f800000U; bits += 997) {
    for (uint32_t sign : {0U, 0x80000000U}) {
      const float x = std::bit_cast<float>(bits | sign);
      if (x < lowest || x > highest) continue;
      const double wanted = exact(static_cast<double>(x));
      const float got = approximation(x);
      const float rounded = static_cast<float>(wanted);
      if (got == rounded || (std::isnan(got) && std::isnan(rounded))) continue;
      int exponent = 0;
      std::frexp(rounded, &exponent);
      const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
      const double error = std::abs(static_cast<double>(got) - wanted) / ulp;
      worst = error > worst || std::isnan(error) ? error : worst;
    }
  }
  return worst;
}

}  // namespace lockstep
