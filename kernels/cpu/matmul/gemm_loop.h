#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

/// Type in which products of T are summed. Integers wrap around, so they are summed unsigned.
template <class T>
using SumType =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, ComputeType<T>>;

/// Computes a block of a product by plain vectorised loops, for dtypes that oneDNN does not
/// support. The sums are in `sums()` with row stride `ld()`, zero-padded. Element (i, j) adds its k
/// terms in order.
template <class T>
class GemmLoop {
 public:
  using S = SumType<T>;

  /// a [m, k] and b [k, n] point to the first element of this block.
  GemmLoop(int64_t m, int64_t n, int64_t k, const T* a, Factor a_layout, const T* b,
           Factor b_layout)
      : ld_(round_up(n, kColumns)), sums_(static_cast<size_t>(round_up(m, kRows) * ld_)) {
    std::vector<S> packed_a(static_cast<size_t>(round_up(m, kRows) * kDepth));
    std::vector<S> packed_b(static_cast<size_t>(ld_ * kDepth));
    for (int64_t first = 0; first < k; first += kDepth) {
      const int64_t depth = std::min(kDepth, k - first);
      // Pack panels of kRows rows of a and kColumns columns of b, each contiguous along k.
      pack<kRows>(packed_a.data(), a, m, first, depth, a_layout.transposed ? 1 : a_layout.ld,
                  a_layout.transposed ? a_layout.ld : 1);
      pack<kColumns>(packed_b.data(), b, n, first, depth, b_layout.transposed ? b_layout.ld : 1,
                     b_layout.transposed ? 1 : b_layout.ld);
      for (int64_t i = 0; i < m; i += kRows) {
        for (int64_t j = 0; j < n; j += kColumns) {
          add_panel(sums_.data() + i * ld_ + j, packed_a.data() + i * depth,
                    packed_b.data() + j * depth, depth);
        }
      }
    }
  }

  const S* sums() const { return sums_.data(); }
  int64_t ld() const { return ld_; }

 private:
  static constexpr int64_t kWidth = VectorOf<S>::kWidth;
  static constexpr int64_t kRows = 4;
  static constexpr int64_t kColumns = 2 * kWidth;
  static constexpr int64_t kDepth = 256;

  static int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

  template <int64_t kUnit>
  static void pack(S* to, const T* from, int64_t count, int64_t first, int64_t depth,
                   int64_t unit_stride, int64_t depth_stride) {
    for (int64_t i = 0; i < count; i += kUnit) {
      for (int64_t p = 0; p < depth; ++p) {
        const T* source = from + i * unit_stride + (first + p) * depth_stride;
        for (int64_t u = 0; u < kUnit; ++u) {
          *to++ = i + u < count ? convert<S>(source[u * unit_stride]) : S(0);
        }
      }
    }
  }

  void add_panel(S* sums, const S* a, const S* b, int64_t depth) const {
    Vector<S> sum[kRows][2];
    for (int64_t i = 0; i < kRows; ++i) {
      sum[i][0] = load_vector(sums + i * ld_);
      sum[i][1] = load_vector(sums + i * ld_ + kWidth);
    }
    for (int64_t p = 0; p < depth; ++p) {
      const Vector<S> b0 = load_vector(b + p * kColumns);
      const Vector<S> b1 = load_vector(b + p * kColumns + kWidth);
      for (int64_t i = 0; i < kRows; ++i) {
        sum[i][0] += a[p * kRows + i] * b0;
        sum[i][1] += a[p * kRows + i] * b1;
      }
    }
    for (int64_t i = 0; i < kRows; ++i) {
      store_vector(sums + i * ld_, sum[i][0]);
      store_vector(sums + i * ld_ + kWidth, sum[i][1]);
    }
  }

  int64_t ld_;
  std::vector<S> sums_;
};

}  // namespace lockstep::cpu
