#pragma once

#include "kernels/cuda/loss/max_sum.cuh"
#include "kernels/cuda/loss/softmax.h"
#include "kernels/cuda/rows.cuh"

namespace lockstep::cuda {

// Softmax and its gradient of rows that a group of threads holds in registers.

/// Computes one result element from the line's maximum and the sum relative to it.
template <class T, class C = ComputeType<T>>
struct Normalise {
  C largest;
  C scale;
  C rest;
  bool log;
  __device__ Normalise(C largest_in, C sum, bool log_in)
      : largest(largest_in), scale(C(1) / sum), rest(elementary::log(sum)), log(log_in) {}
  __device__ C operator()(C x) const {
    // Subtracted one after the other: largest + rest would lose digits when it is large compared
    // with the spread of x.
    return log ? (x - largest) - rest : exp_for<T>(x - largest) * scale;
  }
};

template <class T, class Group, int kPack, int kEach>
__device__ inline void softmax_held(const SoftmaxLines& p) {
  using C = ComputeType<T>;
  const int n = static_cast<int>(p.n);
  for (int64_t row = Group::first(); row < p.outer; row += Group::step()) {
    HeldRow<T, Group, kPack, kEach> x;
    x.load(static_cast<const T*>(p.a) + row * n, n, LargestOf<C>::identity());
    const C largest = x.template combine<LargestOf<C>>();
    C sum = 0;
    if (p.log) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) sum += exp_for<T>(x.at[i] - largest);
      sum = Group::template combine<SumOf<C>>(sum);
      const C rest = elementary::log(sum);
#pragma unroll
      for (int i = 0; i < kEach; ++i) x.at[i] = (x.at[i] - largest) - rest;
    } else {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        x.at[i] = exp_for<T>(x.at[i] - largest);
        sum += x.at[i];
      }
      const C scale = C(1) / Group::template combine<SumOf<C>>(sum);
#pragma unroll
      for (int i = 0; i < kEach; ++i) x.at[i] *= scale;
    }
    x.store(p.out_dtype, p.y, row, n);
  }
}

// softmax: dx = y (g - sum(g y)); log_softmax: dx = g - e^y sum(g).

template <class C>
__device__ inline C softmax_gradient_term(bool log, C g, C y) {
  return log ? g : g * y;
}
template <class C>
__device__ inline C softmax_gradient(bool log, C g, C y, C total) {
  return log ? g - elementary::exp(y) * total : y * (g - total);
}

template <class T, class Group, int kPack, int kEach>
__device__ inline void softmax_backward_held(const SoftmaxLines& p) {
  using C = ComputeType<T>;
  const int n = static_cast<int>(p.n);
  for (int64_t row = Group::first(); row < p.outer; row += Group::step()) {
    HeldRow<T, Group, kPack, kEach> g, y;
    g.load(static_cast<const T*>(p.a) + row * n, n, C(0));
    y.load(static_cast<const T*>(p.b) + row * n, n, C(0));
    C total = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) total += softmax_gradient_term(p.log, g.at[i], y.at[i]);
    total = Group::template combine<SumOf<C>>(total);
#pragma unroll
    for (int i = 0; i < kEach; ++i) g.at[i] = softmax_gradient(p.log, g.at[i], y.at[i], total);
    g.store(p.out_dtype, p.y, row, n);
  }
}

}  // namespace lockstep::cuda
