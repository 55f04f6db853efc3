#include "core/library.h"
#include "kernels/cpu/gamma.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/functors.h"
#include "kernels/special.h"

namespace lockstep::cpu {

namespace {

// One functor for each function of kernels/special.h.
#define LS_FUNCTOR(Name, function)       \
  struct Name {                          \
    static constexpr bool kHeavy = true; \
    template <class T>                   \
    T operator()(T x) const {            \
      return elementary::function(x);    \
    }                                    \
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
  static constexpr bool kHeavy = true;
  float operator()(float x) const { return tan_f32(x); }
  double operator()(double x) const { return std::tan(x); }
  static bool rare(float x) { return !(std::fabs(x) <= kMaxAngleF32); }
  static float exact(float x) { return static_cast<float>(std::tan(static_cast<double>(x))); }
};
struct LogGamma {
  static constexpr bool kHeavy = true;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(log_gamma(static_cast<double>(x)));
  }
};
struct Digamma {
  static constexpr bool kHeavy = true;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(cpu::digamma(static_cast<double>(x)));
  }
};
struct Polygamma {
  static constexpr bool kHeavy = true;
  int64_t order;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(cpu::polygamma(order, static_cast<double>(x)));
  }
};

template <class F>
void unary(const Out& out, const In& self) {
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, F(), self); });
}
void polygamma_kernel(const Out& out, int64_t n, const In& self) {
  if (n == 0) return unary<Digamma>(out, self);
  with_floating_lane(out.dtype, [&]<class T>() { elementwise<T, T>(out, Polygamma{n}, self); });
}

LS_KERNEL(CPU, "exp2", unary<ExpTwo>, Strides::kAny);
LS_KERNEL(CPU, "expm1", unary<ExpMinusOne>, Strides::kAny);
LS_KERNEL(CPU, "log1p", unary<LogOnePlus>, Strides::kAny);
LS_KERNEL(CPU, "log2", unary<LogTwo>, Strides::kAny);
LS_KERNEL(CPU, "log10", unary<LogTen>, Strides::kAny);
LS_KERNEL(CPU, "tan", unary<Tangent>, Strides::kAny);
LS_KERNEL(CPU, "asin", unary<ArcSine>, Strides::kAny);
LS_KERNEL(CPU, "acos", unary<ArcCosine>, Strides::kAny);
LS_KERNEL(CPU, "atan", unary<ArcTangent>, Strides::kAny);
LS_KERNEL(CPU, "sinh", unary<HyperbolicSine>, Strides::kAny);
LS_KERNEL(CPU, "cosh", unary<HyperbolicCosine>, Strides::kAny);
LS_KERNEL(CPU, "asinh", unary<AreaSine>, Strides::kAny);
LS_KERNEL(CPU, "acosh", unary<AreaCosine>, Strides::kAny);
LS_KERNEL(CPU, "atanh", unary<AreaTangent>, Strides::kAny);
LS_KERNEL(CPU, "erf", unary<ErrorFunction>, Strides::kAny);
LS_KERNEL(CPU, "erfc", unary<ComplementaryError>, Strides::kAny);
LS_KERNEL(CPU, "lgamma", unary<LogGamma>, Strides::kAny);
LS_KERNEL(CPU, "digamma", unary<Digamma>, Strides::kAny);
LS_KERNEL(CPU, "polygamma", polygamma_kernel, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
