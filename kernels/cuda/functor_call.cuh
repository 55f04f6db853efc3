#pragma once

#include <type_traits>

#include "kernels/common/functors.h"

namespace lockstep::cuda {

/// Functors that compute some float arguments, those for which rare() is true, with exact().
template <class F, class... A>
concept HasRare = (std::is_same_v<A, float> && ...) && requires(A... a) {
  F::rare(a...);
};

template <class F, class... A>
__device__ inline auto apply(const F& functor, A... a) {
  if constexpr (HasRare<F, A...>) {
    if (F::rare(a...)) return F::exact(a...);
  }
  return functor(a...);
}

}  // namespace lockstep::cuda
