#pragma once

#include <limits>

#include "core/base/host_device.h"
#include "kernels/common/elementary.h"
#include "kernels/common/joins.h"
#include "kernels/cuda/elements.cuh"

namespace lockstep::cuda {

/// e^x for elements that are stored as T. For halves a GPU's instruction does alone: its relative
/// error, 2^-22 + |x| 2^-24, is far below what rounding them loses.
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

/// The sum of e^(x - shift) of the elements so far, relative to the largest of them.
template <class C>
struct MaxSum {
  C largest;
  C sum;

  LS_HOST_DEVICE static MaxSum none() { return {LargestOf<C>::identity(), C(0)}; }
  /// The largest element, or 0 where all are -inf: then any shift does, and this one gives no NaN.
  LS_HOST_DEVICE C shift() const { return largest == LargestOf<C>::identity() ? C(0) : largest; }
  LS_HOST_DEVICE C sum_relative_to(C other) const {
    return sum == 0 ? C(0) : sum * elementary::exp(shift() - other);
  }
  /// T: what the elements are stored as.
  template <int kCount, class T = C>
  __device__ void add(const C* x) {
    MaxSum both = *this;
    for (int k = 0; k < kCount; ++k) both.largest = LargestOf<C>::join(both.largest, x[k]);
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
  LS_HOST_DEVICE static Element join(const Element& a, const Element& b) {
    Element both{LargestOf<C>::join(a.largest, b.largest), C(0)};
    both.sum = a.sum_relative_to(both.shift()) + b.sum_relative_to(both.shift());
    return both;
  }
};

}  // namespace lockstep::cuda
