#pragma once

#include <limits>

#include "core/base/host_device.h"
#include "kernels/common/elementary.h"
#include "kernels/common/joins.h"
#include "kernels/cuda/elements.cuh"

namespace lockstep::cuda {

/// e^x for elements stored as T. f16 and bf16 use the hardware instruction: its relative error,
/// 2^-22 + |x| 2^-24, is far below their rounding error.
template <class T>
__device__ inline ComputeType<T> exp_for(ComputeType<T> x) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 2) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 0x1.715476p0F));
    return result;
  }
#endif
  return elementary::exp(x);
}

/// Running maximum, and sum of e^(x - shift) relative to it (online softmax).
template <class C>
struct MaxSum {
  C largest;
  C sum;

  LS_HOST_DEVICE static MaxSum none() { return {LargestOf<C>::identity(), C(0)}; }
  /// The largest element, or 0 if all are -inf: any shift is correct then, and 0 gives no NaN.
  LS_HOST_DEVICE C shift() const { return largest == LargestOf<C>::identity() ? C(0) : largest; }
  LS_HOST_DEVICE C sum_relative_to(C other) const {
    return sum == 0 ? C(0) : sum * elementary::exp(shift() - other);
  }
  /// Adds kCount elements. T is the type they are stored as.
  template <int kCount, class T = C>
  __device__ void add(const C* x) {
    MaxSum both = *this;
    for (int k = 0; k < kCount; ++k) both.largest = LargestOf<C>::combine(both.largest, x[k]);
    const C shift = both.shift();
    C more = 0;
    for (int k = 0; k < kCount; ++k) more += exp_for<T>(x[k] - shift);
    both.sum = sum_relative_to(shift) + more;
    *this = both;
  }
};
template <class C>
struct JoinMaxSum {
  using Element = MaxSum<C>;
  LS_HOST_DEVICE static Element combine(const Element& a, const Element& b) {
    Element both{LargestOf<C>::combine(a.largest, b.largest), C(0)};
    both.sum = a.sum_relative_to(both.shift()) + b.sum_relative_to(both.shift());
    return both;
  }
};

}  // namespace lockstep::cuda
