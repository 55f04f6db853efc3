#pragma once

// What the text of a loop kernel begins with (kernels/cpu/loop_source.h): this header and those
// that it includes are compiled at run time, without the library.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/functors.h"
#include "kernels/cpu/converted.h"
#include "kernels/cpu/step_constants.h"
#include "kernels/pointwise/activation.h"
#include "kernels/pointwise/arithmetic.h"
#include "kernels/pointwise/bessel.h"
#include "kernels/pointwise/compare.h"
#include "kernels/pointwise/division.h"
#include "kernels/pointwise/formula.h"
#include "kernels/pointwise/logic.h"
#include "kernels/pointwise/normal.h"
#include "kernels/pointwise/pairs.h"
#include "kernels/pointwise/piecewise.h"
#include "kernels/pointwise/round.h"
#include "kernels/pointwise/special.h"
#include "kernels/pointwise/unary.h"

namespace lockstep::cpu {

/// A functor's result. Rare arguments are noted in `rare`, and computed exactly where kExact: the
/// loops of kernels do the same (strided_loop.h).
template <bool kExact, class R, class F, class... A>
R applied(const F& functor, [[maybe_unused]] int& rare, A... arguments) {
  if constexpr (std::is_same_v<R, float> && functors::HasRare<F, A...>) {
    if constexpr (kExact) {
      return F::rare(arguments...) ? F::exact(arguments...) : functor(arguments...);
    }
    rare |= F::rare(arguments...) ? 1 : 0;
  }
  return functor(arguments...);
}

}  // namespace lockstep::cpu
