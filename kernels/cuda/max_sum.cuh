#pragma once

#include <limits>

#include "core/host_device.h"
#include "kernels/elementary.h"
#include "kernels/joins.h"

namespace lockstep::cuda {

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
  template <int kCount>
  LS_HOST_DEVICE void add(const C* x) {
    MaxSum both = *this;
    for (int k = 0; k < kCount; ++k) both.largest = LargestOf<C>::join(both.largest, x[k]);
    const C shift = both.shift();
    C more = 0;
    for (int k = 0; k < kCount; ++k) more += elementary::exp(x[k] - shift);
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
