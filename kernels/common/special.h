#pragma once

#include "kernels/common/elementary.h"

namespace lockstep {

// More elementary functions in f32, written like those of kernels/common/elementary.h: without
// branches, so that loops over them vectorise, and with the limits and NaNs of <cmath>.
// tests/kernels/special_test.cc checks the errors quoted.

/// 2^x; 1.1 ulp.
LS_HOST_DEVICE inline float exp2_f32(float x) {
  constexpr float kRound = detail::kRound + 254;
  const float shifted = x + kRound;
  const float r = x - (shifted - kRound);  // exact, in [-1/2, 1/2]
  float p = 1.3814465e-03F;
  const float y = r * 0x1.62e430p-1F;
  p = std::fma(p, y, 8.368781e-03F);
  p = std::fma(p, y, 4.1668393e-02F);
  p = std::fma(p, y, 1.666652e-01F);
  p = std::fma(p, y, 4.9999994e-01F);
  p = std::fma(p, y * y, y) + 1.0F;
  return between_f32(x, -151.0F, 129.0F, scaled_f32(p, std::bit_cast<uint32_t>(shifted)));
}

/// e^x - 1; 1.5 ulp.
LS_HOST_DEVICE inline float expm1_f32(float x) {
  float t = x > 89.0F ? 89.0F : x;
  t = t < -20.0F ? -20.0F : t;
  const ExpParts parts = exp_parts_f32(t, 126);
  // 2^n (1 + q) - 1, computed as twice the value for 2^(n-1), which is in range.
  const float half = detail::power_of_two(parts.biased);
  const float result = 2.0F * std::fma(half, parts.q, half - 0.5F);
  return x == 0.0F ? x : result;  // keeps -0
}

/// log(1 + x); 1.6 ulp.
LS_HOST_DEVICE inline float log1p_f32(float x) {
  const float sum = 1.0F + x;
  const float lost = x - (sum - 1.0F);  // rounding error of the sum
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float correction = sum > 0.0F && sum < kInfinity ? lost / sum : 0.0F;
  return sum == 1.0F ? x : log_f32(sum) + correction;
}

/// Base-2 logarithm, exact for powers of two; 1.9 ulp.
LS_HOST_DEVICE inline float log2_f32(float x) {
  const LogParts parts = log_parts_f32(x);
  const float log = std::fma(-0.5F, parts.square, parts.rest) + parts.f;
  return log_everywhere_f32(x, std::fma(log, 0x1.715476p0F, parts.k));
}
/// Base-10 logarithm; 2 ulp.
LS_HOST_DEVICE inline float log10_f32(float x) {
  const LogParts parts = log_parts_f32(x);
  const float log = std::fma(-0.5F, parts.square, parts.rest) + parts.f;
  // log10(2) is split into two constants for precision.
  const float low = std::fma(parts.k, -0x1.ec10c0p-27F, log * 0x1.bcb7b2p-2F);
  return log_everywhere_f32(x, std::fma(parts.k, 0x1.344136p-2F, low));
}

/// Tangent for |x| <= kMaxAngleF32; 3.5 ulp.
LS_HOST_DEVICE inline float tan_f32(float x) {
  const SineCosine v = sincos_f32(x);
  return v.sine / v.cosine;
}

namespace detail {
/// asin(x) for |x| <= 1/2.
LS_HOST_DEVICE inline float asin_near_zero(float x) {
  const float square = x * x;
  float p = 3.3797536e-02F;
  p = std::fma(p, square, 1.7082542e-02F);
  p = std::fma(p, square, 3.1115279e-02F);
  p = std::fma(p, square, 4.4598076e-02F);
  p = std::fma(p, square, 7.5000994e-02F);
  p = std::fma(p, square, 1.6666666e-01F);
  return std::fma(p * square, x, x);
}
/// atan(x) for x in [0, 1].
LS_HOST_DEVICE inline float atan_below_one(float x) {
  const float square = x * x;
  float p = 1.5120178e-03F;
  p = std::fma(p, square, -9.2506101e-03F);
  p = std::fma(p, square, 2.6505966e-02F);
  p = std::fma(p, square, -4.9166422e-02F);
  p = std::fma(p, square, 7.0442393e-02F);
  p = std::fma(p, square, -8.936172e-02F);
  p = std::fma(p, square, 1.1089125e-01F);
  p = std::fma(p, square, -1.4284089e-01F);
  p = std::fma(p, square, 1.9999953e-01F);
  p = std::fma(p, square, -3.3333334e-01F);
  return std::fma(p * square, x, x);
}
/// pi / 2 - y; pi / 2 is split into two constants for precision.
LS_HOST_DEVICE inline float from_right_angle(float y) {
  return 0x1.921fb6p0F - (y + 0x1.777a5cp-25F);
}
}  // namespace detail

/// Inverse sine; 2.5 ulp.
LS_HOST_DEVICE inline float asin_f32(float x) {
  const float a = std::fabs(x);
  // Above 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
  const float folded = detail::asin_near_zero(std::sqrt(0.5F * (1.0F - a)));
  const float far = detail::from_right_angle(2.0F * folded);
  return std::copysign(a < 0.5F ? detail::asin_near_zero(a) : far, x);
}
/// Inverse cosine; 1.3 ulp.
LS_HOST_DEVICE inline float acos_f32(float x) {
  const float a = std::fabs(x);
  const float folded = 2.0F * detail::asin_near_zero(std::sqrt(0.5F * (1.0F - a)));
  const float far = x < 0.0F ? 0x1.921fb6p1F - (folded + 0x1.777a5cp-24F) : folded;
  return a < 0.5F ? detail::from_right_angle(detail::asin_near_zero(x)) : far;
}
/// Inverse tangent; 1.4 ulp.
LS_HOST_DEVICE inline float atan_f32(float x) {
  const float a = std::fabs(x);
  const float folded = detail::atan_below_one(a > 1.0F ? 1.0F / a : a);
  return std::copysign(a > 1.0F ? detail::from_right_angle(folded) : folded, x);
}
/// Angle of the point (x, y) in radians; 1.8 ulp.
LS_HOST_DEVICE inline float atan2_f32(float y, float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float a = std::fabs(x);
  const float b = std::fabs(y);
  const float larger = a > b ? a : b;
  const float smaller = a > b ? b : a;
  float ratio = smaller / larger;
  ratio = larger == 0.0F ? 0.0F : ratio;
  ratio = smaller == kInfinity ? 1.0F : ratio;
  const float folded = detail::atan_below_one(ratio);
  float angle = b > a ? detail::from_right_angle(folded) : folded;
  angle = std::signbit(x) ? 0x1.921fb6p1F - (angle + 0x1.777a5cp-24F) : angle;
  return x != x || y != y ? x + y : std::copysign(angle, y);
}

/// Hyperbolic cosine; 3.2 ulp.
LS_HOST_DEVICE inline float cosh_f32(float x) {
  const float root = exp_f32(0.5F * std::fabs(x));  // e^a itself may overflow when cosh does not
  const float big = 0.5F * root * root;
  return big + 0.25F / big;
}
/// Hyperbolic sine; 4 ulp.
LS_HOST_DEVICE inline float sinh_f32(float x) {
  const float a = std::fabs(x);
  const float root = exp_f32(0.5F * a);
  const float big = 0.5F * root * root;
  const float square = x * x;
  float p = 2.806154e-06F;
  p = std::fma(p, square, 1.9838121e-04F);
  p = std::fma(p, square, 8.3333394e-03F);
  p = std::fma(p, square, 1.6666667e-01F);
  const float near_zero = std::fma(p * square, a, a);
  return std::copysign(a < 1.0F ? near_zero : big - 0.25F / big, x);
}
/// Inverse hyperbolic sine; 2.5 ulp.
LS_HOST_DEVICE inline float asinh_f32(float x) {
  const float a = std::fabs(x);
  const float near = log1p_f32(a + a * a / (1.0F + std::sqrt(std::fma(a, a, 1.0F))));
  const float far = log_f32(a) + 0x1.62e430p-1F;  // here a^2 would overflow
  return std::copysign(a < 0x1p12F ? near : far, x);
}
/// Inverse hyperbolic cosine; 2.5 ulp.
LS_HOST_DEVICE inline float acosh_f32(float x) {
  const float above = x - 1.0F;
  const float near = log1p_f32(above + std::sqrt(above * (above + 2.0F)));
  const float far = log_f32(x) + 0x1.62e430p-1F;
  const float inside = x < 0x1p12F ? near : far;
  return x < 1.0F ? std::numeric_limits<float>::quiet_NaN() : inside;
}
/// Inverse hyperbolic tangent; 2.7 ulp.
LS_HOST_DEVICE inline float atanh_f32(float x) {
  const float a = std::fabs(x);
  return std::copysign(0.5F * log1p_f32(2.0F * a / (1.0F - a)), x);
}

/// erfc(|x|); relative error 6e-7 down to the subnormals.
LS_HOST_DEVICE inline float erfc_of_magnitude_f32(float x) {
  const float a = std::fabs(x) > 11.0F ? 11.0F : std::fabs(x);
  const float square = a * a;
  const float rest = std::fma(a, a, -square);  // rounding error of the square
  const float e = exp_f32(-square);
  const float bell = std::fma(-rest, e, e);
  const float tail = bell * detail::erfcx_polynomial(1.0F / std::fma(a, 0.3F, 1.0F));
  return x != x ? x : tail;
}
namespace detail {
/// erf(x) for |x| < 1.
LS_HOST_DEVICE inline float erf_near_zero(float x) {
  const float square = x * x;
  float p = -9.6419926e-06F;
  p = std::fma(p, square, 1.1257078e-04F);
  p = std::fma(p, square, -8.4828405e-04F);
  p = std::fma(p, square, 5.2209459e-03F);
  p = std::fma(p, square, -2.68654e-02F);
  p = std::fma(p, square, 1.1283782e-01F);
  p = std::fma(p, square, -3.7612638e-01F);
  p = std::fma(p, square, 1.1283792F);
  return p * x;
}
}  // namespace detail

/// Error function; 2.7 ulp.
LS_HOST_DEVICE inline float erf_f32(float x) {
  const float far = std::copysign(1.0F - erfc_of_magnitude_f32(x), x);
  return std::fabs(x) < 1.0F ? detail::erf_near_zero(x) : far;
}
/// 1 - erf(x); relative error 6e-7.
LS_HOST_DEVICE inline float erfc_f32(float x) {
  const float tail = erfc_of_magnitude_f32(x);
  const float far = x < 0.0F ? 2.0F - tail : tail;
  return std::fabs(x) < 0.5F ? 1.0F - detail::erf_near_zero(x) : far;
}

/// Overloads for float and double under one name, for functors.
namespace elementary {
#define LS_BOTH_TYPES(name)                                                       \
  LS_HOST_DEVICE inline float name(float x) { return ::lockstep::name##_f32(x); } \
  LS_HOST_DEVICE inline double name(double x) { return std::name(x); }
LS_BOTH_TYPES(exp2)
LS_BOTH_TYPES(expm1)
LS_BOTH_TYPES(log1p)
LS_BOTH_TYPES(log2)
LS_BOTH_TYPES(log10)
LS_BOTH_TYPES(asin)
LS_BOTH_TYPES(acos)
LS_BOTH_TYPES(atan)
LS_BOTH_TYPES(sinh)
LS_BOTH_TYPES(cosh)
LS_BOTH_TYPES(asinh)
LS_BOTH_TYPES(acosh)
LS_BOTH_TYPES(atanh)
LS_BOTH_TYPES(erf)
LS_BOTH_TYPES(erfc)
#undef LS_BOTH_TYPES
LS_HOST_DEVICE inline float atan2(float y, float x) { return atan2_f32(y, x); }
LS_HOST_DEVICE inline double atan2(double y, double x) { return std::atan2(y, x); }
}  // namespace elementary

}  // namespace lockstep
