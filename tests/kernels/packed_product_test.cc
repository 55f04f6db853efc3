#include "kernels/cpu/matmul/packed_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/tensor/dtype.h"

namespace lockstep::cpu {
namespace {

/// A product whose matrices have gaps between their rows, and memory behind them that holds NaN.
template <class T>
class PackedOperands {
 public:
  PackedOperands(int64_t m, int64_t n, int64_t k, bool turn_a, bool turn_b, bool add)
      : a_(drawn<T>(turn_a ? k : m, turn_a ? m : k, 1)),
        b_(drawn<T>(turn_b ? n : k, turn_b ? k : n, 2)),
        c_(drawn<float>(m, add ? n : 0, 3)),
        product_{.transpose_a = turn_a,
                 .transpose_b = turn_b,
                 .m = m,
                 .n = n,
                 .k = k,
                 .a = a_.data(),
                 .lda = (turn_a ? m : k) + kGap,
                 .b = b_.data(),
                 .ldb = (turn_b ? k : n) + kGap,
                 .addend = nullptr,
                 .addend_ld = n + kGap,
                 .c = c_.data(),
                 .ldc = n + kGap} {
    c_.resize(static_cast<size_t>(m * (n + kGap)), std::nanf(""));
    before_ = c_;
    product_.c = c_.data();
    if (add) product_.addend = c_.data();
  }

  const PackedProduct<T>& product() const { return product_; }
  float result(int64_t i, int64_t j) const { return c_[static_cast<size_t>(i * product_.ldc + j)]; }

  /// The sum in the order that ordered_product.h fixes.
  float expected(int64_t i, int64_t j) const {
    const auto& p = product_;
    const int64_t pieces = (p.k + 383) / 384;
    const int64_t piece = ((p.k + pieces - 1) / pieces + 15) / 16 * 16;
    float total = before_[static_cast<size_t>(i * p.ldc + j)];
    for (int64_t first = 0; first < p.k; first += piece) {
      float sum = 0;
      for (int64_t s = first; s < std::min(p.k, first + piece); ++s) {
        const T a = p.transpose_a ? p.a[s * p.lda + i] : p.a[i * p.lda + s];
        const T b = p.transpose_b ? p.b[j * p.ldb + s] : p.b[s * p.ldb + j];
        sum = std::fma(static_cast<float>(a), static_cast<float>(b), sum);
      }
      total = first == 0 && p.addend == nullptr ? sum : total + sum;
    }
    return total;
  }

 private:
  static constexpr int64_t kGap = 3;

  template <class E>
  static std::vector<E> drawn(int64_t rows, int64_t columns, uint32_t seed) {
    std::vector<E> values(static_cast<size_t>(rows * (columns + kGap)), E(std::nanf("")));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        seed = seed * 1664525U + 1013904223U;
        values[static_cast<size_t>(i * (columns + kGap) + j)] =
            E(static_cast<float>(static_cast<double>(seed >> 8) / 8388608.0 - 1));
      }
    }
    return values;
  }

  std::vector<T> a_, b_;
  std::vector<float> c_, before_;
  PackedProduct<T> product_;
};

template <class T>
void expect_sums_in_order(int64_t m, int64_t n, int64_t k) {
  for (int ways = 0; ways < 8; ++ways) {
    const PackedOperands<T> operands(m, n, k, (ways & 1) != 0, (ways & 2) != 0, (ways & 4) != 0);
    multiply_packed(operands.product());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(operands.result(i, j), operands.expected(i, j))
            << m << " x " << n << " x " << k << ", way " << ways << ", at " << i << ", " << j;
      }
      ASSERT_TRUE(std::isnan(operands.result(i, n))) << "row " << i << " is written behind its end";
    }
  }
}

/// Sizes around those of a tile, of a vector, of the columns that are packed at once, and of the
/// pieces of a sum.
constexpr int64_t kSizesAroundTiles[][3] = {
    {1, 1, 1},   {1, 400, 20}, {2, 15, 384}, {3, 16, 385}, {4, 17, 100},  {5, 24, 33},
    {7, 47, 16}, {8, 48, 17},  {9, 49, 800}, {17, 95, 64}, {12, 384, 48}, {11, 433, 7}};

TEST(PackedProduct, AddsTheTermsOfPiecesInOrderInEveryLayoutOfFloat32) {
  for (const auto& [m, n, k] : kSizesAroundTiles) expect_sums_in_order<float>(m, n, k);
}

TEST(PackedProduct, AddsTheTermsOfPiecesInOrderInEveryLayoutOfBfloat16) {
  for (const auto& [m, n, k] : kSizesAroundTiles) expect_sums_in_order<BFloat16>(m, n, k);
}

TEST(PackedProduct, AddsTheTermsOfPiecesInOrderInEveryLayoutOfFloat16) {
  for (const auto& [m, n, k] : kSizesAroundTiles) expect_sums_in_order<Half>(m, n, k);
}

}  // namespace
}  // namespace lockstep::cpu
