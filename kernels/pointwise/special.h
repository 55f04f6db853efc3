#pragma once

#include "kernels/common/functor_name.h"
#include "kernels/common/gamma.h"
#include "kernels/common/special.h"

namespace lockstep::functors {

// One functor for each function of kernels/common/special.h.
#define LS_FUNCTOR(Name, function)              \
  struct Name {                                 \
    static constexpr FunctorName kName = #Name; \
    static constexpr bool kHeavy = true;        \
    template <class T>                          \
    LS_HOST_DEVICE T operator()(T x) const {    \
      return elementary::function(x);           \
    }                                           \
  };
LS_FUNCTOR(ExpTwo, exp2)
LS_FUNCTOR(ExpMinusOne, expm1)
LS_FUNCTOR(LogOnePlus, log1p)
LS_FUNCTOR(LogTwo, log2)
LS_FUNCTOR(LogTen, log10)
LS_FUNCTOR(ArcSine, asin)
LS_FUNCTOR(ArcCosine, acos)
LS_FUNCTOR(ArcTangent, atan)
LS_FUNCTOR(HyperbolicSine, sinh)
LS_FUNCTOR(HyperbolicCosine, cosh)
LS_FUNCTOR(AreaSine, asinh)
LS_FUNCTOR(AreaCosine, acosh)
LS_FUNCTOR(AreaTangent, atanh)
LS_FUNCTOR(ErrorFunction, erf)
LS_FUNCTOR(ComplementaryError, erfc)
#undef LS_FUNCTOR

struct Tangent {
  static constexpr FunctorName kName = "Tangent";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE float operator()(float x) const { return tan_f32(x); }
  LS_HOST_DEVICE double operator()(double x) const { return std::tan(x); }
  LS_HOST_DEVICE static bool rare(float x) { return !(std::fabs(x) <= kMaxAngleF32); }
  LS_HOST_DEVICE static float exact(float x) {
    return static_cast<float>(std::tan(static_cast<double>(x)));
  }
};
struct LogGamma {
  static constexpr FunctorName kName = "LogGamma";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(log_gamma(static_cast<double>(x)));
  }
};
struct Digamma {
  static constexpr FunctorName kName = "Digamma";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(lockstep::digamma(static_cast<double>(x)));
  }
};
struct Polygamma {
  static constexpr FunctorName kName = "Polygamma";
  static constexpr bool kHeavy = true;
  int64_t order;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(lockstep::polygamma(order, static_cast<double>(x)));
  }
};

}  // namespace lockstep::functors
