#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/common/elementary.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

/// y[i] = exp(x[i] - shift) for i in [0, n), in a loop that vectorises. y may be x.
template <class C>
void exp_row(C* y, const C* x, int64_t n, C shift) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = elementary::exp(x[i] - shift);
}

/// e^x for x <= 0, not NaN, with the bits of exp except that subnormal results become 0, which
/// halves the work.
inline float exp_of_negative(float x) {
  const ExpParts parts = exp_parts_f32(x, 127);
  const float result = (parts.q + 1.0F) * detail::power_of_two(parts.biased);
  return x < -87.3F ? 0.0F : result;
}

/// Maximum of n > 0 elements, NaN if there is one.
inline float largest_of_row(const BFloat16* x, int64_t n) {
  // With the low bits of negative numbers inverted, int16 comparison orders the bits like the
  // numbers.
  const auto ordered = [](int16_t bits) {
    return static_cast<int16_t>(bits ^ ((bits >> 15) & 0x7fff));
  };
  int16_t largest = std::numeric_limits<int16_t>::min();
  int16_t size = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = static_cast<int16_t>(x[i].bits);
    largest = std::max(largest, ordered(bits));
    size = std::max(size, static_cast<int16_t>(bits & 0x7fff));
  }
  if (size > 0x7f80) return std::numeric_limits<float>::quiet_NaN();
  BFloat16 result;
  result.bits = static_cast<uint16_t>(ordered(largest));
  return result;
}

/// log(sum of exp(x[i])) in one pass: the sum is kept relative to the largest element so far, in
/// blocks of fixed length.
template <class C>
class LogSumExp {
 public:
  /// `kPairs` as in LaneAccumulator.
  template <bool kPairs = false>
  void add(const C* x, int64_t n) {
    constexpr int64_t kBlock = 1024;
    alignas(32) C buffer[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t length = std::min(kBlock, n - i);
      const C before = shift();
      largest_ = LargestOf<C>::combine(largest_, join_row<LargestOf<C>, kPairs>(x + i, length));
      if (sum_ != 0) sum_ *= static_cast<double>(elementary::exp(before - shift()));
      exp_row(buffer, x + i, length, shift());
      sum_ += static_cast<double>(join_row<SumOf<C>, kPairs>(buffer, length));
    }
  }
  /// The largest element, or 0 if all are -inf: any shift is correct then, and 0 gives no NaN.
  C shift() const { return largest_ == -std::numeric_limits<C>::infinity() ? C(0) : largest_; }
  /// log(sum of exp(x[i] - shift())).
  C log_sum() const { return elementary::log(static_cast<C>(sum_)); }
  C value() const { return shift() + log_sum(); }

 private:
  C largest_ = -std::numeric_limits<C>::infinity();
  double sum_ = 0;
};

}  // namespace lockstep::cpu
