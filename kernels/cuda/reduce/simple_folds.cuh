#pragma once

#include "kernels/cuda/reduce/reduction.cuh"

namespace lockstep::cuda {

/// Combines elements with one of the structs of kernels/common/joins.h.
template <class Op>
struct SimpleFold {
  using C = typename Op::Element;
  using State = C;
  bool mean;  ///< divide results by `number`, which is then not negative
  double divisor;

  template <class Params>
  __device__ explicit SimpleFold(const Params& p) : mean(p.number >= 0), divisor(p.number) {}
  __device__ State none() const { return Op::identity(); }
  template <int kCount>
  __device__ void add(State& state, const C* x, int64_t, int64_t) const {
    C joined = x[0];
#pragma unroll
    for (int k = 1; k < kCount; ++k) joined = Op::combine(joined, x[k]);
    state = Op::combine(state, joined);
  }
  __device__ static State combine(State a, State b) { return Op::combine(a, b); }
  template <class Params>
  __device__ void store(const Params& p, int64_t i, State state) const {
    if (mean) {
      store_result(p.result, i, static_cast<double>(state) / divisor);
    } else {
      store_result(p.result, i, state);
    }
  }
};

/// Joins truths, which are 0 or 1.
struct AnyOf {
  using Element = int32_t;
  __device__ static Element identity() { return 0; }
  __device__ static Element combine(Element a, Element b) { return a | b; }
};
struct AllOf {
  using Element = int32_t;
  __device__ static Element identity() { return 1; }
  __device__ static Element combine(Element a, Element b) { return a & b; }
};

}  // namespace lockstep::cuda
