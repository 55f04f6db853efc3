#pragma once

#include <cmath>
#include <limits>

#include "kernels/common/functor_name.h"
#include "kernels/common/normal.h"
#include "kernels/common/special.h"

namespace lockstep::functors {

// One functor for each function of kernels/common/normal.h.
#define LS_FUNCTOR(Name, function)                             \
  struct Name {                                                \
    static constexpr FunctorName kName = #Name;                \
    static constexpr bool kHeavy = true;                       \
    template <class T>                                         \
    LS_HOST_DEVICE T operator()(T x) const {                   \
      return static_cast<T>(function(static_cast<double>(x))); \
    }                                                          \
  };
LS_FUNCTOR(ScaledErrorFunction, scaled_erfc)
LS_FUNCTOR(InverseErrorFunction, inverse_erf)
LS_FUNCTOR(NormalCdf, normal_cdf)
LS_FUNCTOR(LogNormalCdf, log_normal_cdf)
LS_FUNCTOR(NormalQuantile, normal_quantile)
#undef LS_FUNCTOR

/// -x log x: 0 at 0, -inf below.
struct Entropy {
  static constexpr FunctorName kName = "Entropy";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    const T inside = -x * elementary::log(x);
    const T result = x == T(0) ? T(0) : inside;
    return x < T(0) ? -std::numeric_limits<T>::infinity() : result;
  }
};
/// sin(pi x) / (pi x), 1 at 0.
struct CardinalSine {
  static constexpr FunctorName kName = "CardinalSine";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    const double angle = 3.14159265358979323846 * static_cast<double>(x);
    return static_cast<T>(angle == 0 ? 1.0 : std::sin(angle) / angle);
  }
};

}  // namespace lockstep::functors
