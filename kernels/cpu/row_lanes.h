#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/tensor/dtype.h"
#include "kernels/common/joins.h"
#include "kernels/cpu/wide_vectors.h"

#if LS_HAVE_WIDE_VECTORS
#include <immintrin.h>
#endif

namespace lockstep::cpu {

/// 32 bytes of T with element-wise operators.
template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(32)));
  /// Unaligned variant.
  typedef T unaligned __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  static constexpr int64_t kWidth = 32 / sizeof(T);
  /// Integers of T's size, as comparisons return and shuffles take.
  using Integer = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef Integer integers __attribute__((vector_size(32)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
inline Vector<T> load_vector(const T* x) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(x);
}
template <class T>
inline void store_vector(T* x, Vector<T> value) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(x) = value;
}

/// Two adjacent vectors, for loops compiled for wide vectors (wide_vectors.h).
template <class T>
struct VectorPairOf {
  typedef T type __attribute__((vector_size(64)));
  /// Unaligned variant.
  typedef T unaligned __attribute__((vector_size(64), aligned(alignof(T)), may_alias));
};
template <class T>
using VectorPair = typename VectorPairOf<T>::type;

/// Loads 8 elements of bf16 as f32.
inline Vector<float> load_widened(const BFloat16* x) {
  typedef uint16_t Words __attribute__((vector_size(16), aligned(2), may_alias));
  typedef uint32_t Wide __attribute__((vector_size(32)));
  const Wide wide = __builtin_convertvector(*reinterpret_cast<const Words*>(x), Wide) << 16;
  return reinterpret_cast<Vector<float>>(wide);
}

/// Loads 16 elements of bf16 as f32.
LS_WIDE_VECTORS_PART inline void load_widened(VectorPair<float>& to, const BFloat16* x) {
#if LS_HAVE_WIDE_VECTORS
  typedef uint32_t Wide __attribute__((vector_size(64)));
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  // The masked form with all lanes set: GCC 12 warns about the unmasked one.
  const Wide wide = reinterpret_cast<Wide>(_mm512_maskz_cvtepu16_epi32(0xffff, words)) << 16;
  to = reinterpret_cast<VectorPair<float>>(wide);
#else
  for (int k = 0; k < 16; ++k) to[k] = static_cast<float>(x[k]);
#endif
}

/// Combines a run of elements in an order that depends only on their number: element i goes to lane
/// i mod 4 w, where w is the vector width (the last few go elsewhere), and the lanes are combined
/// as a tree. The independent lanes hide the latency of additions, the rounding error is like that
/// of a pairwise sum, and every thread gives the same bits.
template <class Op>
class LaneAccumulator {
 public:
  using T = typename Op::Element;

  LaneAccumulator() {
    for (Vector<T>& vector : vectors_) vector = Vector<T>{} + Op::identity();
  }
  /// `kPairs` processes two vectors per instruction on processors with wide vectors; the bits are
  /// the same. `ahead` is the prefetch distance in bytes, for callers that read on past this run;
  /// only with kPairs.
  template <bool kPairs = false>
  void add(const T* x, int64_t n, int64_t ahead = 0) {
    int64_t done = 0;
    if constexpr (kPairs) done = add_pairs(x, n, ahead);
    add_each(
        n, [x](int64_t i) { return load_vector(x + i); }, [x](int64_t i) { return x[i]; }, done);
  }
  /// Adds bf16 elements, converted as they are read.
  template <bool kPairs = false>
  void add(const BFloat16* x, int64_t n, int64_t ahead = 0) requires(std::is_same_v<T, float>) {
    int64_t done = 0;
    if constexpr (kPairs) done = add_pairs(x, n, ahead);
    add_each(
        n, [x](int64_t i) { return load_widened(x + i); },
        [x](int64_t i) { return static_cast<float>(x[i]); }, done);
  }
  /// Adds computed elements: `vector(i)` returns w of them from the i-th on, `scalar(i)` one. The
  /// first `done` elements, a multiple of 4 w, have been added already.
  template <class VectorAt, class ScalarAt>
  void add_each(int64_t n, VectorAt vector, ScalarAt scalar, int64_t done = 0) {
    Vector<T> a = vectors_[0], b = vectors_[1], c = vectors_[2], d = vectors_[3];
    int64_t i = done;
    for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
      a = Op::combine(a, vector(i));
      b = Op::combine(b, vector(i + kWidth));
      c = Op::combine(c, vector(i + 2 * kWidth));
      d = Op::combine(d, vector(i + 3 * kWidth));
    }
    if (i + 2 * kWidth <= n) {
      a = Op::combine(a, vector(i));
      b = Op::combine(b, vector(i + kWidth));
      i += 2 * kWidth;
    }
    if (i + kWidth <= n) {
      c = Op::combine(c, vector(i));
      i += kWidth;
    }
    if (i < n && n >= kWidth) {  // reload the last full vector and mask the elements already added
      const Vector<T> none = Vector<T>{} + Op::identity();
      d = Op::combine(
          d, numbered() >= static_cast<Integer>(kWidth - (n - i)) ? vector(n - kWidth) : none);
    } else if (i < n) {
      d = Op::combine(d, few(n, scalar, std::make_index_sequence<kWidth>()));
    }
    vectors_[0] = a, vectors_[1] = b, vectors_[2] = c, vectors_[3] = d;
  }
  T total() const {
    Vector<T> v =
        Op::combine(Op::combine(vectors_[0], vectors_[1]), Op::combine(vectors_[2], vectors_[3]));
    return fold<kWidth / 2>(v);
  }

 private:
  LS_WIDE_VECTORS_PART static void load_pair(VectorPair<T>& to, const T* x) {
    to = *reinterpret_cast<const typename VectorPairOf<T>::unaligned*>(x);
  }
  LS_WIDE_VECTORS_PART static void load_pair(VectorPair<T>& to, const BFloat16* x) {
    load_widened(to, x);
  }
  /// Op::combine compiled for wide vectors; Op::combine itself is compiled for the baseline.
  LS_WIDE_VECTORS_PART static void join_pair(VectorPair<T>& a, const VectorPair<T>& b) {
    if constexpr (std::is_same_v<Op, SumOf<T>>) {
      a += b;
    } else if constexpr (std::is_same_v<Op, ProductOf<T>>) {
      a *= b;
    } else if constexpr (std::is_same_v<Op, LargestOf<T>>) {
      a = ((b > a) | (b != b)) ? b : a;
    } else {
      static_assert(std::is_same_v<Op, SmallestOf<T>>);
      a = ((b < a) | (b != b)) ? b : a;
    }
  }
  /// Adds as many of the n elements as fill all lanes; returns their number.
  template <class From>
  LS_WIDE_VECTORS_PART int64_t add_pairs(const From* x, int64_t n, int64_t ahead) {
    constexpr int64_t kLine = 64;  // bytes per cache line
    constexpr int64_t kStep = 4 * kWidth * static_cast<int64_t>(sizeof(From));
    if (n < 4 * kWidth) return 0;
    VectorPair<T> low, high, next;
    load_pair(low, reinterpret_cast<const T*>(&vectors_[0]));
    load_pair(high, reinterpret_cast<const T*>(&vectors_[2]));
    int64_t i = 0;
    for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
      for (int64_t line = 0; line < kStep; line += kLine) {
        __builtin_prefetch(reinterpret_cast<const std::byte*>(x + i) + ahead + line);
      }
      load_pair(next, x + i);
      join_pair(low, next);
      load_pair(next, x + i + 2 * kWidth);
      join_pair(high, next);
    }
    std::memcpy(&vectors_[0], &low, sizeof(low));
    std::memcpy(&vectors_[2], &high, sizeof(high));
    return i;
  }

  /// Combines each lane with the one `kHalf` lanes away, then kHalf / 2, down to 1; returns lane 0.
  template <size_t kHalf>
  static T fold(Vector<T> v) {
    if constexpr (kHalf == 0) {
      return v[0];
    } else {
      const auto exchanged = [&]<size_t... k>(std::index_sequence<k...>) {
        return __builtin_shufflevector(v, v, (k ^ kHalf)...);
      };
      v = Op::combine(v, exchanged(std::make_index_sequence<kWidth>()));
      return fold<kHalf / 2>(v);
    }
  }

  static constexpr int64_t kWidth = VectorOf<T>::kWidth;
  using Integer = typename VectorOf<T>::Integer;

  /// Gathers n < w elements, built in registers: a vector load right after scalar stores to the
  /// same memory would stall.
  template <class ScalarAt, size_t... k>
  static Vector<T> few(int64_t n, ScalarAt scalar, std::index_sequence<k...>) {
    return Vector<T>{(static_cast<int64_t>(k) < n ? scalar(k) : Op::identity())...};
  }
  /// 0, 1, 2, ...
  static typename VectorOf<T>::integers numbered() {
    typename VectorOf<T>::integers numbers{};
    for (int64_t k = 0; k < kWidth; ++k) numbers[k] = static_cast<Integer>(k);
    return numbers;
  }

  Vector<T> vectors_[4];
};

/// Elements combined in one set of lanes before its total is added to a wider sum.
inline constexpr int64_t kLaneBlock = 2048;

/// Combines x[0, n) in blocks of kLaneBlock; sums add the blocks' totals in f64. `kPairs` as in
/// LaneAccumulator.
template <class Op, bool kPairs = false>
typename Op::Element join_row(const typename Op::Element* x, int64_t n) {
  using T = typename Op::Element;
  using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;
  Total total = Op::identity();
  for (int64_t i = 0; i < n; i += kLaneBlock) {
    LaneAccumulator<Op> lanes;
    lanes.template add<kPairs>(x + i, n - i < kLaneBlock ? n - i : kLaneBlock);
    total = Op::combine(total, static_cast<Total>(lanes.total()));
  }
  return static_cast<T>(total);
}

}  // namespace lockstep::cpu
