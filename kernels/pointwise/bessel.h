#pragma once

#include "kernels/common/bessel.h"
#include "kernels/common/functor_name.h"

namespace lockstep::functors {

// One functor for each function of kernels/common/bessel.h.
#define LS_FUNCTOR(Name, function)                             \
  struct Name {                                                \
    static constexpr FunctorName kName = #Name;                \
    static constexpr bool kHeavy = true;                       \
    template <class T>                                         \
    LS_HOST_DEVICE T operator()(T x) const {                   \
      return static_cast<T>(function(static_cast<double>(x))); \
    }                                                          \
  };
LS_FUNCTOR(ModifiedBessel0, bessel_i0)
LS_FUNCTOR(ModifiedBessel1, bessel_i1)
LS_FUNCTOR(ScaledModifiedBessel0, bessel_i0e)
LS_FUNCTOR(ScaledModifiedBessel1, bessel_i1e)
LS_FUNCTOR(Bessel0, bessel_j0)
LS_FUNCTOR(Bessel1, bessel_j1)
#undef LS_FUNCTOR

}  // namespace lockstep::functors
