#pragma once

#include <algorithm>
#include <limits>

#include "kernels/cpu/row_lanes.h"
#include "kernels/elementary.h"

namespace lockstep::cpu {

/// y[i] = exp(x[i] - shift) for i in [0, n), in a loop that vectorises. y may be x.
template <class C>
void exp_row(C* y, const C* x, int64_t n, C shift) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = elementary::exp(x[i] - shift);
}

/// log(sum of exp(x[i])), read once: the sum is kept relative to the largest element so far, in
/// blocks of a fixed length.
template <class C>
class LogSumExp {
 public:
  void add(const C* x, int64_t n) {
    constexpr int64_t kBlock = 1024;
    alignas(32) C buffer[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t length = std::min(kBlock, n - i);
      const C before = shift();
      largest_ = LargestOf<C>::join(largest_, join_row<LargestOf<C>>(x + i, length));
      if (sum_ != 0) sum_ *= static_cast<double>(elementary::exp(before - shift()));
      exp_row(buffer, x + i, length, shift());
      sum_ += static_cast<double>(join_row<SumOf<C>>(buffer, length));
    }
  }
  /// The largest element, or 0 where all are -inf: then any shift does, and this one gives no NaN.
  C shift() const { return largest_ == -std::numeric_limits<C>::infinity() ? C(0) : largest_; }
  /// log(sum of exp(x[i] - shift())).
  C log_rest() const { return elementary::log(static_cast<C>(sum_)); }
  C value() const { return shift() + log_rest(); }

 private:
  C largest_ = -std::numeric_limits<C>::infinity();
  double sum_ = 0;
};

}  // namespace lockstep::cpu
