#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/row_lanes.h"

#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace lockstep::cpu {

// How products of blocks in a core's cache are computed: f32 on any processor, f32 with 64-byte
// vectors, or bf16. Factors are arrays of words of 32 bits along the summed dimension: one f32, or
// two neighbouring bf16. Sums are f32.

/// f32, with the vectors of the build's baseline.
struct F32Arithmetic {
  using Lanes = Vector<float>;
  static constexpr int64_t kLanes = 8;
  static constexpr int64_t kRows = 4;     ///< rows of a tile that stays in registers
  static constexpr int64_t kPerWord = 1;  ///< elements of a word
  static void load(Lanes& to, const float* from) { to = load_vector(from); }
  static void load(Lanes& to, const BFloat16* from) { to = load_widened(from); }
  static void load(Lanes& to, const Half* from) {
#if defined(__F16C__)
    to = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
    for (int64_t l = 0; l < kLanes; ++l) to[l] = static_cast<float>(from[l]);
#endif
  }
  static void store(float* to, const Lanes& from) { store_vector(to, from); }
  /// All lanes = *a.
  static void spread(Lanes& to, const float* a) {
#if defined(__FMA__)
    to = _mm256_set1_ps(*a);
#else
    for (int64_t l = 0; l < kLanes; ++l) to[l] = *a;
#endif
  }
  /// sum += a b for a word of `a` and a vector of words `b`.
  static void multiply_add(Lanes& sum, const float* a, const Lanes& b) {
    Lanes factor;
    spread(factor, a);
    multiply_add(sum, factor, b);
  }
  static void multiply_add(Lanes& sum, const Lanes& a, const Lanes& b) {
#if defined(__FMA__)
    sum = _mm256_fmadd_ps(a, b, sum);
#else
    for (int64_t l = 0; l < kLanes; ++l) sum[l] = std::fma(a[l], b[l], sum[l]);
#endif
  }
  /// x *= factor, then top = the larger of top and x. A NaN is passed over: its exponential is NaN
  /// whatever is subtracted.
  static void scale_and_raise(Lanes& x, float factor, Lanes& top) {
    x *= factor;
    top = x > top ? x : top;
  }
  /// sum += factor x, rounded twice.
  static void add_scaled(Lanes& sum, const Lanes& x, float factor) { sum += x * factor; }
};

#if LS_HAVE_WIDE_VECTORS

/// f32 with AVX-512; the bits of F32Arithmetic.
struct WideF32Arithmetic {
  using Lanes = VectorPair<float>;
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kRows = 8;
  static constexpr int64_t kPerWord = 1;
  LS_WIDE_VECTORS_PART static void load(Lanes& to, const float* from) {
    to = *reinterpret_cast<const VectorPairOf<float>::unaligned*>(from);
  }
  LS_WIDE_VECTORS_PART static void load(Lanes& to, const BFloat16* from) { load_widened(to, from); }
  LS_WIDE_VECTORS_PART static void load(Lanes& to, const Half* from) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    to = reinterpret_cast<Lanes>(_mm512_maskz_cvtph_ps(0xffff, words));
  }
  LS_WIDE_VECTORS_PART static void store(float* to, const Lanes& from) {
    *reinterpret_cast<VectorPairOf<float>::unaligned*>(to) = from;
  }
  LS_WIDE_VECTORS_PART static void spread(Lanes& to, const float* a) {
    to = reinterpret_cast<Lanes>(_mm512_set1_ps(*a));
  }
  LS_WIDE_VECTORS_PART static void multiply_add(Lanes& sum, const float* a, const Lanes& b) {
    sum = _mm512_fmadd_ps(_mm512_set1_ps(*a), b, sum);
  }
  LS_WIDE_VECTORS_PART static void multiply_add(Lanes& sum, const Lanes& a, const Lanes& b) {
    sum = _mm512_fmadd_ps(a, b, sum);
  }
  LS_WIDE_VECTORS_PART static void scale_and_raise(Lanes& x, float factor, Lanes& top) {
    x *= factor;
    top = x > top ? x : top;
  }
  LS_WIDE_VECTORS_PART static void add_scaled(Lanes& sum, const Lanes& x, float factor) {
    sum += x * factor;
  }
};

#define LS_BF16_FEATURES "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"
#define LS_BF16_TARGET LS_TARGET_OF(LS_BF16_FEATURES)

/// bf16 with AVX512_BF16: each instruction adds two products of a pair to a sum.
struct BF16Arithmetic : WideF32Arithmetic {
  static constexpr int64_t kPerWord = 2;
  [[LS_BF16_TARGET]] static void multiply_add(Lanes& sum, const float* a, const Lanes& b) {
    typedef int32_t Word __attribute__((may_alias));
    const auto pair =
        reinterpret_cast<__m512bh>(_mm512_set1_epi32(*reinterpret_cast<const Word*>(a)));
    sum = _mm512_dpbf16_ps(sum, pair, reinterpret_cast<__m512bh>(b));
  }
  /// Rounds 16 elements of two rows to bf16, and writes each column as a word.
  [[LS_BF16_TARGET]] static void store_pairs(float* to, const float* low, const float* high) {
    const __m512i even = rounded(low);
    const __m512i odd = rounded(high);
    _mm512_storeu_si512(to, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
  }
  /// Rounds 16 elements of a row to bf16, and writes neighbours as words.
  [[LS_BF16_TARGET]] static void store_row(float* to, const float* from) {
    const auto row = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(from)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), row);
  }

 private:
  [[LS_BF16_TARGET]] static __m512i rounded(const float* from) {
    const auto row = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(from)));
    return _mm512_maskz_cvtepu16_epi32(0xffff, row);
  }
};

template <class Body>
LS_WIDE_VECTORS void run_wide(const Body& body) {
  body.template operator()<WideF32Arithmetic>();
}
template <class Body>
[[LS_BF16_TARGET, gnu::flatten]] void run_bf16(const Body& body) {
  body.template operator()<BF16Arithmetic>();
}

#endif

/// True if this processor multiplies bf16 (AVX512_BF16) faster than f32, and `has_wide_vectors()`.
/// AMD's do. Intel's (Emerald Rapids) begin such an instruction in every fourth of the cycles in
/// which they begin two of f32 products, so that they do half as many in a time.
bool has_bf16_products();

/// Calls `body.template operator()<P>()` with the best arithmetic P of f32 on this processor.
template <class Body>
void with_f32_arithmetic(const Body& body) {
#if LS_HAVE_WIDE_VECTORS
  if (has_wide_vectors()) return run_wide(body);
#endif
  body.template operator()<F32Arithmetic>();
}

/// Does the same, but with BF16Arithmetic if `in_bf16`, which the processor must have products of.
template <class Body>
void with_arithmetic([[maybe_unused]] bool in_bf16, const Body& body) {
#if LS_HAVE_WIDE_VECTORS
  if (in_bf16) return run_bf16(body);
#endif
  with_f32_arithmetic(body);
}

}  // namespace lockstep::cpu
