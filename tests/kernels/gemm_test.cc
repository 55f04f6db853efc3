#include "kernels/cpu/matmul/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/device/exact_rows.h"
#include "kernels/cpu/matmul/onednn.h"

namespace lockstep::cpu {
namespace {

/// Pseudo-random numbers in [-1, 1) that depend on the index only.
double number(size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761U;
  x = (x ^ (x >> 15)) * 2246822519U;
  x ^= x >> 13;
  return static_cast<double>(x >> 8) / 8388608.0 - 1.0;
}

template <class T>
std::vector<T> numbers(int64_t count, double scale) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      values[i] = static_cast<T>(static_cast<int64_t>(number(i) * scale));
    } else {
      values[i] = T(static_cast<float>(number(i)));
    }
  }
  return values;
}

/// A product and its operands; each row has `gap` unused elements at its end.
template <class T>
struct Case {
  std::vector<T> a, b, addend, result;
  Product product;

  Case(int64_t batch, int64_t m, int64_t n, int64_t k, bool turn_a, bool turn_b, int64_t gap = 0) {
    product.dtype = dtype_of<T>;
    product.batch = batch;
    product.m = m;
    product.n = n;
    product.k = k;
    const int64_t lda = (turn_a ? m : k) + gap;
    const int64_t ldb = (turn_b ? k : n) + gap;
    product.ld = n + gap;
    const int64_t size_a = std::max<int64_t>(1, (turn_a ? k : m) * lda);
    const int64_t size_b = std::max<int64_t>(1, (turn_b ? n : k) * ldb);
    a = numbers<T>(batch * size_a, 20);
    b = numbers<T>(batch * size_b + 7, 20);
    b.erase(b.begin(), b.begin() + 7);  // so that b differs from a
    addend = numbers<T>(n, 50);
    result.assign(static_cast<size_t>(batch * m * product.ld), T());
    product.a = {a.data(), std::max<int64_t>(1, lda), turn_a, size_a};
    product.b = {b.data(), std::max<int64_t>(1, ldb), turn_b, size_b};
    product.batch_stride = m * product.ld;
    product.result = result.data();
  }

  double factor(const Factor& f, const std::vector<T>& values, int64_t batch, int64_t i,
                int64_t j) const {
    const int64_t at = batch * f.batch_stride + (f.transposed ? j * f.ld + i : i * f.ld + j);
    return static_cast<double>(values[static_cast<size_t>(at)]);
  }

  /// Largest error against the naive f64 result, in units of epsilon * sum of |terms|.
  double error(double epsilon) const {
    double worst = 0;
    for (int64_t s = 0; s < product.batch; ++s) {
      for (int64_t i = 0; i < product.m; ++i) {
        for (int64_t j = 0; j < product.n; ++j) {
          double sum = 0;
          double size = 0;
          for (int64_t p = 0; p < product.k; ++p) {
            const double term = factor(product.a, a, s, i, p) * factor(product.b, b, s, p, j);
            sum += term;
            size += std::fabs(term);
          }
          double want = product.alpha.to_double() * sum;
          if (product.addend.data != nullptr) {
            const double added = static_cast<double>(addend[static_cast<size_t>(j)]);
            want += product.beta.to_double() * added;
            size += std::fabs(added);
          }
          const int64_t at = s * product.batch_stride + i * product.ld + j;
          const double got = static_cast<double>(result[static_cast<size_t>(at)]);
          worst =
              std::max(worst, std::fabs(got - want) / (epsilon * (size + std::fabs(want)) + 1e-30));
        }
      }
    }
    return worst;
  }

  void add_row(Scalar beta, Scalar alpha) {
    product.alpha = alpha;
    product.beta = beta;
    product.addend = {addend.data(), 0, 0, 1};
  }
};

constexpr int64_t kSizes[][3] = {{1, 1, 1},    {3, 5, 7},    {4, 4, 4},     {17, 1, 300},
                                 {1, 300, 40}, {130, 49, 1}, {40, 60, 270}, {130, 200, 100}};

template <class T>
void expect_agreement(double epsilon, Scalar beta, Scalar alpha) {
  for (const auto& [m, n, k] : kSizes) {
    for (int turns = 0; turns < 4; ++turns) {
      const bool turn_a = (turns & 1) != 0;
      const bool turn_b = (turns & 2) != 0;
      Case<T> plain(2, m, n, k, turn_a, turn_b);
      gemm(plain.product);
      EXPECT_LT(plain.error(epsilon), 4) << m << " " << n << " " << k << " turns " << turns;
      Case<T> added(1, m, n, k, turn_a, turn_b, 3);
      added.add_row(beta, alpha);
      gemm(added.product);
      EXPECT_LT(added.error(epsilon), 4) << m << " " << n << " " << k << " turns " << turns;
    }
  }
}

TEST(Gemm, AgreesWithTheNaiveProductInEveryLayout) {
  expect_agreement<float>(std::numeric_limits<float>::epsilon(), 0.5, -2.0);
  expect_agreement<double>(std::numeric_limits<double>::epsilon(), 0.5, -2.0);
}

TEST(Gemm, RoundsHalvesOnce) {
  expect_agreement<BFloat16>(0x1p-9, 0.5, -2.0);
  expect_agreement<Half>(0x1p-12, 0.5, -2.0);
}

TEST(Gemm, AddsABiasOfHalvesBeforeTheOnlyRounding) {
  // bf16 has 8 bits of mantissa: 257 alone would round to 256, and 256 + 1 to 256 again.
  for (const bool turned : {false, true}) {
    Case<BFloat16> c(1, 64, 96, 257, turned, turned);
    std::ranges::fill(c.a, BFloat16(1.0F));
    std::ranges::fill(c.b, BFloat16(1.0F));
    std::ranges::fill(c.addend, BFloat16(1.0F));
    c.product.addend = {c.addend.data(), 0, 0, 1};
    c.product.beta = 1;
    gemm(c.product);
    for (const BFloat16 each : c.result) ASSERT_EQ(static_cast<float>(each), 258.0F);
  }
}

TEST(Gemm, IsExactInIntegers) {
  expect_agreement<int64_t>(0, 3, -2);
  expect_agreement<int32_t>(0, 3, -2);
}

TEST(Gemm, SmallIntegersWrapAround) {
  Case<int8_t> square(1, 1, 1, 3, false, false);
  square.a = {100, 100, 1};
  square.b = {1, 1, 1};
  gemm(square.product);
  EXPECT_EQ(square.result[0], static_cast<int8_t>(201 - 256));
}

TEST(Gemm, DoesNotReadTheAddendWithBetaZero) {
  Case<float> product(1, 20, 30, 40, false, false);
  product.add_row(0.0, 1.0);
  product.addend.assign(product.addend.size(), std::numeric_limits<float>::quiet_NaN());
  product.result.assign(product.result.size(), std::numeric_limits<float>::quiet_NaN());
  gemm(product.product);
  for (float value : product.result) ASSERT_TRUE(std::isfinite(value));
}

TEST(Gemm, WithoutInnerSizeGivesTheAddend) {
  Case<float> product(2, 3, 4, 0, false, true);
  product.result.assign(product.result.size(), 7.0F);
  gemm(product.product);
  for (float value : product.result) EXPECT_EQ(value, 0.0F);
  product.add_row(2.0, 1.0);
  gemm(product.product);
  for (size_t i = 0; i < product.result.size(); ++i) {
    EXPECT_EQ(product.result[i], 2 * product.addend[i % 4]);
  }
}

TEST(Gemm, LeavesGapsBetweenRowsAlone) {
  Case<float> product(1, 33, 65, 50, false, false, 5);
  product.result.assign(product.result.size(), -3.0F);
  gemm(product.product);
  for (int64_t i = 0; i < 33; ++i) {
    for (int64_t j = 65; j < 70; ++j) {
      ASSERT_EQ(product.result[static_cast<size_t>(i * 70 + j)], -3.0F);
    }
  }
}

TEST(Gemm, RefusesBool) {
  Product product;
  product.dtype = DType::kBool;
  product.m = product.n = product.k = 1;
  EXPECT_THROW(gemm(product), DTypeError);
}

template <class T>
void expect_same_bits(int64_t batch, int64_t m, int64_t n, int64_t k, bool turn_a, bool turn_b) {
  const int before = num_threads();
  std::vector<T> first;
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    Case<T> product(batch, m, n, k, turn_a, turn_b);
    product.add_row(1, 1);
    gemm(product.product);
    if (first.empty()) first = product.result;
    EXPECT_EQ(std::memcmp(first.data(), product.result.data(), first.size() * sizeof(T)), 0)
        << threads << " threads, " << m << " " << n << " " << k;
  }
  set_num_threads(before);
}

TEST(Gemm, BitsDoNotDependOnTheNumberOfThreads) {
  for (int turns = 0; turns < 4; ++turns) {
    const bool turn_a = (turns & 1) != 0;
    const bool turn_b = (turns & 2) != 0;
    expect_same_bits<float>(1, 512, 384, 300, turn_a, turn_b);
    expect_same_bits<float>(1, 64, 96, 4000, turn_a, turn_b);
    expect_same_bits<float>(7, 33, 65, 40, turn_a, turn_b);
    expect_same_bits<double>(1, 300, 200, 130, turn_a, turn_b);
    expect_same_bits<BFloat16>(1, 200, 333, 256, turn_a, turn_b);
    expect_same_bits<Half>(1, 41, 700, 500, turn_a, turn_b);
    // Tiles of all heights, which some thread numbers cut and others do not.
    for (const int64_t m : {33, 40, 72, 270})
      expect_same_bits<float>(1, m, 200, 700, turn_a, turn_b);
  }
  expect_same_bits<float>(1, 1, 3000, 768, false, true);
  expect_same_bits<float>(1, 3000, 1, 768, false, false);
}

/// The bits of the first rows of products of one `k` and `n` with more and more rows.
template <class T>
void expect_rows_of_their_own(int64_t n, int64_t k, bool turn_b, bool added) {
  constexpr int64_t kMost = 300;
  const auto rows = [&](int64_t m) {
    Case<T> product(1, m, n, k, false, turn_b);
    // The operands of any number of rows: those of the largest.
    product.a = numbers<T>(kMost * k, 20);
    product.b = numbers<T>(n * k, 20);
    product.product.a.data = product.a.data();
    product.product.b.data = product.b.data();
    if (added) product.add_row(1, 1);
    gemm(product.product);
    return product.result;
  };
  const std::vector<T> all = rows(kMost);
  for (const int64_t m : {1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 64, 129}) {
    const std::vector<T> few = rows(m);
    ASSERT_EQ(std::memcmp(few.data(), all.data(), few.size() * sizeof(T)), 0)
        << m << " rows, n " << n << ", k " << k << ", turned " << turn_b << ", added " << added;
  }
}

TEST(Gemm, ARowHasTheSameBitsBesideAnyNumberOfOthers) {
  const ExactRows exact_rows;
  for (const bool turn_b : {false, true}) {
    for (const bool added : {false, true}) {
      for (const int64_t k : {1, 3, 64, 385, 1000, 1024}) {
        for (const int64_t n : {1, 2, 7, 49, 256}) {
          expect_rows_of_their_own<float>(n, k, turn_b, added);
        }
        expect_rows_of_their_own<double>(49, k, turn_b, added);
        if (!onednn::is_fast_in_bf16()) expect_rows_of_their_own<BFloat16>(49, k, turn_b, added);
        expect_rows_of_their_own<Half>(49, k, turn_b, added);
      }
      // Widths at which the tiles of a larger product end elsewhere.
      expect_rows_of_their_own<float>(1000, 768, turn_b, added);
      if (!onednn::is_fast_in_bf16()) expect_rows_of_their_own<BFloat16>(1000, 768, turn_b, added);
    }
  }
}

/// Expects the product of 16-bit floats to be sums in f32, with a bias or not, rounded once. Up to
/// 384 terms are added in order (ordered_product.h).
template <class T>
void expect_rounded_product_in_f32(int64_t m, int64_t n, int64_t k, int turns, bool added) {
  const bool turn_a = (turns & 1) != 0, turn_b = (turns & 2) != 0;
  Case<T> product(1, m, n, k, turn_a, turn_b, 3);
  if (added) product.add_row(1, 1);
  gemm(product.product);
  const auto element = [](const Factor& factor, int64_t row, int64_t column) {
    const int64_t at = factor.transposed ? column * factor.ld + row : row * factor.ld + column;
    return static_cast<float>(static_cast<const T*>(factor.data)[at]);
  };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t s = 0; s < k; ++s) {
        sum = std::fma(element(product.product.a, i, s), element(product.product.b, s, j), sum);
      }
      if (added) sum += static_cast<float>(product.addend[static_cast<size_t>(j)]);
      ASSERT_EQ(static_cast<float>(product.result[static_cast<size_t>(i * product.product.ld + j)]),
                static_cast<float>(T(sum)))
          << i << ", " << j << " of " << m << " x " << n << " x " << k << ", turns " << turns;
    }
  }
}

TEST(Gemm, SixteenBitFloatsAreMultipliedAsFloatsWhereThatIsNoSlower) {
  for (int turns = 0; turns < 4; ++turns) {
    for (const bool added : {false, true}) {
      for (const int64_t m : {1, 17, 200}) {
        expect_rounded_product_in_f32<Half>(m, 65, 300, turns, added);
        if (onednn::is_fast_in_bf16()) continue;
        expect_rounded_product_in_f32<BFloat16>(m, 65, 300, turns, added);
      }
    }
  }
}

TEST(GemmBlock, ScalesAndAddsToItsResult) {
  for (int64_t size : {3, 40}) {
    const std::vector<float> a = numbers<float>(size * size, 1);
    std::vector<float> c(static_cast<size_t>(size * size), 2.0F);
    gemm_block(false, true, size, size, size, 0.5F, a.data(), size, a.data(), size, 3.0F, c.data(),
               size);
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < size; ++p) {
          sum += static_cast<double>(a[static_cast<size_t>(i * size + p)]) *
                 static_cast<double>(a[static_cast<size_t>(j * size + p)]);
        }
        ASSERT_NEAR(c[static_cast<size_t>(i * size + j)], 0.5 * sum + 6.0, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::cpu
