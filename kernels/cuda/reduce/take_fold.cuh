#pragma once

#include "kernels/cuda/reduce/reduction.cuh"

namespace lockstep::cuda {

/// True if a is preferred to b: the first of equal elements wins, and NaN beats all but an earlier
/// NaN.
struct Larger {
  template <class C>
  __device__ static bool better(C a, C b) {
    return a > b || (a != a && b == b);
  }
};
struct Smaller {
  template <class C>
  __device__ static bool better(C a, C b) {
    return a < b || (a != a && b == b);
  }
};

template <class Order, class Element>
struct TakeFold {
  using C = Element;
  struct State {
    C value;
    int64_t index;  ///< -1 before the first element
  };

  __device__ explicit TakeFold(const Reduction&) {}
  __device__ State none() const { return {C(0), -1}; }
  template <int kCount>
  __device__ void add(State& state, const C* x, int64_t first, int64_t step) const {
    for (int k = 0; k < kCount; ++k) state = combine(state, {x[k], first + k * step});
  }
  __device__ static State combine(const State& a, const State& b) {
    if (a.index < 0) return b;
    if (b.index < 0 || Order::better(a.value, b.value)) return a;
    if (Order::better(b.value, a.value)) return b;
    return a.index < b.index ? a : b;
  }
  __device__ void store(const Reduction& p, int64_t i, const State& state) const {
    store_result(p.result, i, state.index);
    if (p.second.data != nullptr) store_result(p.second, i, state.value);
  }
};

}  // namespace lockstep::cuda
