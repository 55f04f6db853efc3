#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/host_device.h"

namespace lockstep {

// Branch-free elementary functions in f32, so that loops over them vectorise. Every multiply-add is
// an explicit fma, so that each vector lane gives the same bits as the scalar. The polynomials are
// our own minimax fits; tests/kernels/elementary_test.cc checks the errors quoted here, in units in
// the last place (ulp), against the double functions over all of f32. Infinities, NaN, subnormals
// and overflow behave as in <cmath>. The f64 overloads call <cmath>.

namespace detail {
/// Adding and subtracting this rounds to the nearest integer, which the sum holds in its low bits.
inline constexpr float kRound = 0x1.8p23F;
/// 1 / x for a normal x whose reciprocal is normal too. On a GPU: to 1 ulp, without a division's
/// branches.
LS_HOST_DEVICE inline float reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0F / x;
#endif
}
/// 2^n for n in [-126, 127]. The low nine bits of `biased` are n + 127; higher bits are ignored.
LS_HOST_DEVICE inline float power_of_two(uint32_t biased) {
  return std::bit_cast<float>(biased << 23);
}
}  // namespace detail

/// e^x = 2^n (1 + q) for x in [-104, 89], with |q| < 0.42.
struct ExpParts {
  float q;
  uint32_t biased;  ///< low nine bits: n + bias
};
LS_HOST_DEVICE inline ExpParts exp_parts_f32(float x, int32_t bias) {
  const float round = detail::kRound + static_cast<float>(bias);
  const float shifted = std::fma(x, 0x1.715476p0F, round);
  const float k = shifted - round;
  // x = k ln 2 + r with |r| <= ln 2 / 2; ln 2 is split into two constants for precision.
  float r = std::fma(k, -0x1.62e430p-1F, x);
  r = std::fma(k, 0x1.05c610p-29F, r);
  float p = 1.3814465e-03F;
  p = std::fma(p, r, 8.368781e-03F);
  p = std::fma(p, r, 4.1668393e-02F);
  p = std::fma(p, r, 1.666652e-01F);
  p = std::fma(p, r, 4.9999994e-01F);
  return {std::fma(p, r * r, r), std::bit_cast<uint32_t>(shifted)};
}
/// p 2^n for n in [-252, 254]; the low nine bits of `biased` are n + 254. Multiplies by two
/// factors, since 2^n alone may be out of range when the product is not.
LS_HOST_DEVICE inline float scaled_f32(float p, uint32_t biased) {
  const uint32_t half = biased >> 1;
  return p * detail::power_of_two(half) * detail::power_of_two(biased - half);
}
/// Returns 0 for x < a, infinity for x > b, else `inside`. A NaN in `inside` passes through.
LS_HOST_DEVICE inline float between_f32(float x, float a, float b, float inside) {
  const float above = x < a ? 0.0F : inside;
  return x > b ? std::numeric_limits<float>::infinity() : above;
}

/// e^x; 1.1 ulp. On a GPU 2 ulp: its 2^x instruction halves the work.
LS_HOST_DEVICE inline float exp_f32(float x) {
#if defined(__CUDA_ARCH__)
  return ::expf(x);
#endif
  const ExpParts parts = exp_parts_f32(x, 254);
  return between_f32(x, -104.0F, 89.0F, scaled_f32(parts.q + 1.0F, parts.biased));
}

/// A positive finite x as 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) is
/// f - square / 2 + rest.
struct LogParts {
  float k;
  float f;
  float square;  ///< f^2
  float rest;
};
LS_HOST_DEVICE inline LogParts log_parts_f32(float x) {
  const bool subnormal = x < std::numeric_limits<float>::min();
  const uint32_t bits = std::bit_cast<uint32_t>(subnormal ? x * 0x1p23F : x);
  const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3U) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0F;
  const float k = static_cast<float>(subnormal ? exponent - 23 : exponent);
  float p = -7.63443e-02F;
  p = std::fma(p, f, 1.276155e-01F);
  p = std::fma(p, f, -1.3160194e-01F);
  p = std::fma(p, f, 1.4201762e-01F);
  p = std::fma(p, f, -1.6623357e-01F);
  p = std::fma(p, f, 2.0001227e-01F);
  p = std::fma(p, f, -2.5000823e-01F);
  p = std::fma(p, f, 3.333333e-01F);
  const float square = f * f;
  return {k, f, square, p * f * square};
}
/// Returns `inside`, a logarithm computed for positive finite x, or log's special value for other
/// x.
LS_HOST_DEVICE inline float log_everywhere_f32(float x, float inside) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float above = x < kInfinity ? inside : x;
  const float outside = x == 0.0F ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  return x > 0.0F ? above : outside;
}

/// Natural logarithm; 0.9 ulp.
LS_HOST_DEVICE inline float log_f32(float x) {
  const LogParts parts = log_parts_f32(x);
  float r = std::fma(parts.k, -0x1.05c610p-29F, parts.rest);
  r = std::fma(-0.5F, parts.square, r) + parts.f;
  r = std::fma(parts.k, 0x1.62e430p-1F, r);
  return log_everywhere_f32(x, r);
}

/// Hyperbolic tangent; 1.4 ulp.
LS_HOST_DEVICE inline float tanh_f32(float x) {
  const float a = std::fabs(x);
  const float square = x * x;
  float p = -5.717037e-03F;
  p = std::fma(p, square, 2.0650579e-02F);
  p = std::fma(p, square, -5.3743497e-02F);
  p = std::fma(p, square, 1.3331491e-01F);
  p = std::fma(p, square, -3.3333284e-01F);
  const float near_zero = std::fma(p * square, a, a);
#if defined(__CUDA_ARCH__)
  const float far = 1.0F - 2.0F * detail::reciprocal(exp_f32(2.0F * a) + 1.0F);
#else
  const ExpParts parts = exp_parts_f32(2.0F * a, 127);
  const float e = (parts.q + 1.0F) * detail::power_of_two(parts.biased);
  const float far = a > 10.0F ? 1.0F : 1.0F - 2.0F / (e + 1.0F);
#endif
  return std::copysign(a < 0.625F ? near_zero : far, x);
}

/// 1 / (1 + e^-x); 2.5 ulp for results above 2^-125.
LS_HOST_DEVICE inline float sigmoid_f32(float x) { return detail::reciprocal(1.0F + exp_f32(-x)); }

/// Sine and cosine of an angle r in [-pi/4, pi/4].
struct SineCosine {
  float sine;
  float cosine;
};
LS_HOST_DEVICE inline SineCosine sincos_near_zero_f32(float r) {
  const float square = r * r;
  float s = -1.9516655e-04F;
  s = std::fma(s, square, 8.332173e-03F);
  s = std::fma(s, square, -1.6666655e-01F);
  float c = 2.4432411e-05F;
  c = std::fma(c, square, -1.388731e-03F);
  c = std::fma(c, square, 4.1666646e-02F);
  c = std::fma(c, square, -0.5F);
  return {std::fma(s * square, r, r), std::fma(c, square, 1.0F)};
}
/// Rotates by `quarters` quarter turns.
LS_HOST_DEVICE inline SineCosine rotated(SineCosine v, uint32_t quarters) {
  const bool swap = (quarters & 1U) != 0;
  const float sine = swap ? v.cosine : v.sine;
  const float cosine = swap ? v.sine : v.cosine;
  return {(quarters & 2U) != 0 ? -sine : sine, ((quarters + 1) & 2U) != 0 ? -cosine : cosine};
}

/// Largest |x| that `sincos_f32` takes.
inline constexpr float kMaxAngleF32 = 0x1p28F;
/// Sine and cosine for |x| <= kMaxAngleF32; 1.6 ulp.
LS_HOST_DEVICE inline SineCosine sincos_f32(float x) {
  // The reduction by pi/2 (in two parts) is in f64, so that no bit of the angle is lost.
  constexpr double kRound = 0x1.8p52;
  const double wide = x;
  const double shifted = std::fma(wide, 0x1.45f306dc9c883p-1, kRound);
  const double k = shifted - kRound;
  const double r = std::fma(k, -0x1.1a62633145c07p-54, std::fma(k, -0x1.921fb54442d18p0, wide));
  const uint32_t quarters = static_cast<uint32_t>(std::bit_cast<uint64_t>(shifted));
  return rotated(sincos_near_zero_f32(static_cast<float>(r)), quarters);
}
/// Sine and cosine of `turns` full turns, for turns in [0, 1].
LS_HOST_DEVICE inline SineCosine sincos_turns_f32(float turns) {
  const float shifted = std::fma(turns, 4.0F, detail::kRound);
  const float r = std::fma(turns, 4.0F, -(shifted - detail::kRound));  // exact
  return rotated(sincos_near_zero_f32(r * 1.57079637F), std::bit_cast<uint32_t>(shifted));
}

namespace detail {
/// e^(t^2) erfc(t) for t >= 0 as a polynomial in s = 1 / (1 + 0.3 t).
LS_HOST_DEVICE inline float erfcx_polynomial(float s) {
  float p = -1.2652004e-01F;
  p = std::fma(p, s, 4.6884137e-01F);
  p = std::fma(p, s, -4.718131e-01F);
  p = std::fma(p, s, 4.9195096e-01F);
  p = std::fma(p, s, -4.6478253e-02F);
  p = std::fma(p, s, 1.8791829e-01F);
  p = std::fma(p, s, 1.5815468e-01F);
  p = std::fma(p, s, 1.6848776e-01F);
  p = std::fma(p, s, 1.6947418e-01F);
  return std::fma(p, s, -1.5852682e-05F);
}
}  // namespace detail

/// The normal distribution function, and e^(-x^2/2), which is sqrt(2 pi) times its density.
template <class T>
struct NormalDistribution {
  T below;  ///< P(X < x)
  T bell;   ///< e^(-x^2/2)
};
/// The relative error of `below` is 5e-7 on both sides of 0, so that small tails keep their digits.
/// For |x| > 13, where values approach the subnormals, both members are set to their limits.
LS_HOST_DEVICE inline NormalDistribution<float> normal_distribution(float x) {
  constexpr float kFar = 13.0F;
  const bool far = std::fabs(x) > kFar;
  const float a = far ? kFar : std::fabs(x);
  const float square = a * a;
  const float rest = std::fma(a, a, -square);  // rounding error of the square
  // e^(-square / 2) with one factor, since 2^n is in range here.
  const ExpParts parts = exp_parts_f32(-0.5F * square, 127);
  const float e = (parts.q + 1.0F) * detail::power_of_two(parts.biased);
  const float bell = far ? 0.0F : std::fma(-0.5F * rest, e, e);
  // P(X > a) = bell * erfcx(a / sqrt 2) / 2.
  const float p = detail::erfcx_polynomial(detail::reciprocal(std::fma(a, 0.212132034F, 1.0F)));
  const float tail = 0.5F * bell * p;
  return {x > 0.0F ? 1.0F - tail : tail, bell};
}
LS_HOST_DEVICE inline NormalDistribution<double> normal_distribution(double x) {
  return {0.5 * std::erfc(-x * 0.70710678118654752440), std::exp(-0.5 * x * x)};
}

/// Overloads for float and double under one name, for functors.
namespace elementary {
/// a / b for a positive b that is normal or infinite.
LS_HOST_DEVICE inline float quotient(float a, float b) {
#if defined(__CUDA_ARCH__)
  return a * detail::reciprocal(b);
#else
  return a / b;
#endif
}
LS_HOST_DEVICE inline double quotient(double a, double b) { return a / b; }
LS_HOST_DEVICE inline float exp(float x) { return exp_f32(x); }
LS_HOST_DEVICE inline double exp(double x) { return std::exp(x); }
LS_HOST_DEVICE inline float log(float x) { return log_f32(x); }
LS_HOST_DEVICE inline double log(double x) { return std::log(x); }
LS_HOST_DEVICE inline float tanh(float x) { return tanh_f32(x); }
LS_HOST_DEVICE inline double tanh(double x) { return std::tanh(x); }
LS_HOST_DEVICE inline float sigmoid(float x) { return sigmoid_f32(x); }
LS_HOST_DEVICE inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
}  // namespace elementary

}  // namespace lockstep
