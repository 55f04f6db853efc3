#include "kernels/cpu/matmul/ordered_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::cpu {
namespace {

constexpr int64_t kSizesOfProducts[][3] = {{1, 1, 1},   {1, 64, 20},   {2, 65, 384}, {5, 100, 385},
                                           {9, 7, 800}, {16, 48, 769}, {40, 130, 50}};

std::vector<float> drawn(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& each : values) {
    seed = seed * 1664525U + 1013904223U;
    each = static_cast<float>(static_cast<double>(seed >> 8) / 8388608.0 - 1);
  }
  return values;
}

/// A product of some sizes, whose result starts with numbers.
struct Operands {
  Operands(int64_t m, int64_t n, int64_t k, bool turned)
      : a(drawn(m * k, 1)),
        b(drawn(k * n, 2)),
        c(drawn(m * n, 3)),
        product{false,    turned,         m,        n, k,        a.data(), k,
                b.data(), turned ? k : n, c.data(), n, c.data(), n} {}

  float term(const std::vector<float>& c_before, int64_t i, int64_t j, int64_t pieces) const {
    const int64_t k = product.k;
    const int64_t piece = ((k + pieces - 1) / pieces + 15) / 16 * 16;
    float total = c_before[static_cast<size_t>(i * product.n + j)];
    for (int64_t first = 0; first < k; first += piece) {
      float sum = 0;
      for (int64_t s = first; s < std::min(k, first + piece); ++s) {
        const int64_t at = product.transpose_b ? j * k + s : s * product.n + j;
        sum = std::fma(a[static_cast<size_t>(i * k + s)], b[static_cast<size_t>(at)], sum);
      }
      total += sum;
    }
    return total;
  }

  std::vector<float> a, b, c;
  OrderedProduct product;
};

TEST(OrderedProduct, AddsTheTermsOfPiecesInOrderAndThenThePieces) {
  for (const auto& [m, n, k] : kSizesOfProducts) {
    for (const bool turned : {false, true}) {
      Operands operands(m, n, k, turned);
      const std::vector<float> before = operands.c;
      multiply_in_order_by_loops(operands.product);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          ASSERT_EQ(operands.c[static_cast<size_t>(i * n + j)],
                    operands.term(before, i, j, (k + 383) / 384))
              << m << " " << n << " " << k << " turned " << turned << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST(OrderedProduct, HasTheBitsOfTheLoopsHoweverItIsComputed) {
  for (const auto& [m, n, k] : kSizesOfProducts) {
    for (const bool turned : {false, true}) {
      Operands by_loops(m, n, k, turned), chosen(m, n, k, turned);
      multiply_in_order_by_loops(by_loops.product);
      multiply_in_order(chosen.product);
      EXPECT_THAT(chosen.c, testing::ElementsAreArray(by_loops.c)) << m << " " << n << " " << k;
    }
  }
}

TEST(OrderedProduct, AddsARowOrAMatrixOfItsOwn) {
  for (const auto& [m, n, k] : kSizesOfProducts) {
    for (const bool turned : {false, true}) {
      for (const int64_t ld : {int64_t{0}, n + 2}) {
        Operands operands(m, n, k, turned);
        const std::vector<float> addend = drawn(m * (n + 2), 4);
        operands.product.addend = addend.data();
        operands.product.addend_ld = ld;
        std::ranges::fill(operands.c, std::nanf(""));
        multiply_in_order(operands.product);
        std::vector<float> before(operands.c.size());
        for (int64_t i = 0; i < m; ++i) {
          std::copy_n(addend.data() + i * ld, n, before.data() + i * n);
        }
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            ASSERT_EQ(operands.c[static_cast<size_t>(i * n + j)],
                      operands.term(before, i, j, (k + 383) / 384))
                << m << " " << n << " " << k << " turned " << turned << ", ld " << ld;
          }
        }
      }
    }
  }
}

TEST(OrderedProduct, WithoutAnAddendDoesNotReadTheResult) {
  for (const int64_t n : {64, 70}) {
    Operands operands(3, n, 400, true);
    operands.product.addend = nullptr;
    std::ranges::fill(operands.c, std::nanf(""));
    multiply_in_order(operands.product);
    EXPECT_EQ(operands.c.back(),
              operands.term(std::vector<float>(operands.c.size(), 0.0F), 2, n - 1, 2));
  }
}

}  // namespace
}  // namespace lockstep::cpu
