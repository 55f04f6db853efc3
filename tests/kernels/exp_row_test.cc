// Softmax over bfloat16 rows, computed without an f32 copy of the row.

#include "kernels/cpu/loss/exp_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/ops/factory/copy.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Numbers of many magnitudes and both signs.
std::vector<BFloat16> mixed(size_t n, uint32_t seed) {
  std::vector<BFloat16> row;
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 1664525U + 1013904223U;
    BFloat16 number;
    number.bits = static_cast<uint16_t>(seed >> 16);
    row.push_back(std::isfinite(static_cast<float>(number)) ? number : BFloat16(1.0F));
  }
  return row;
}

TEST(ExpRow, LargestOfARowIsItsLargestNumber) {
  for (const size_t n : {1, 2, 31, 33, 100}) {
    for (uint32_t seed = 0; seed < 50; ++seed) {
      std::vector<BFloat16> row = mixed(n, seed);
      float largest = -kInfinityF32;
      for (const BFloat16 number : row) largest = std::max(largest, static_cast<float>(number));
      const auto count = static_cast<int64_t>(n);
      EXPECT_EQ(cpu::largest_of_row(row.data(), count), largest);
      row[n / 2] = BFloat16(kInfinityF32);
      EXPECT_EQ(cpu::largest_of_row(row.data(), count), kInfinityF32);
      row[n - 1].bits = seed % 2 == 0 ? 0x7fc0 : 0xffc1;
      EXPECT_TRUE(std::isnan(cpu::largest_of_row(row.data(), count)));
    }
  }
  const std::vector<BFloat16> none(5, BFloat16(-kInfinityF32));
  EXPECT_EQ(cpu::largest_of_row(none.data(), 5), -kInfinityF32);
}

TEST(ExpRow, ExpOfANegativeNumberIsExpWhereThatIsNormal) {
  for (float x = 0; x > -87.3F; x -= 0.00037F) EXPECT_EQ(cpu::exp_of_negative(x), exp_f32(x)) << x;
  EXPECT_EQ(cpu::exp_of_negative(-0.0F), 1);
  for (const float x : {-88.0F, -1e4F, -3e38F, -kInfinityF32}) {
    EXPECT_EQ(cpu::exp_of_negative(x), 0) << x;
  }
}

TEST(ExpRow, SoftmaxOfBFloat16IsThatOfFloat32Rounded) {
  for (const int64_t n : {1, 7, 33, 2047, 5000}) {
    const Tensor x =
        (random_tensor({3, n}, DType::kF32, static_cast<uint64_t>(n)) * 8.0).to(DType::kBF16);
    const Tensor wide = x.to(DType::kF32);
    EXPECT_EQ(values(softmax(x, 1)), values(softmax(wide, 1).to(DType::kBF16))) << n;
    expect_near(log_softmax(x, 1), log_softmax(wide, 1), 0, 0x1p-8);
  }
}

TEST(ExpRow, RowsWithoutALargestNumberGiveNaN) {
  for (const float special : {kInfinityF32, std::nanf("")}) {
    const Tensor x = ones({2, 40}, {DType::kBF16});
    x.data<BFloat16>()[17] = BFloat16(special);
    for (const Tensor& y : {softmax(x, 1), log_softmax(x, 1)}) {
      const std::vector<double> all = values(y);
      for (size_t i = 0; i < 80; ++i) EXPECT_EQ(std::isnan(all[i]), i < 40) << i;
    }
  }
  const Tensor masked = full({1, 3}, -kInfinity, {DType::kBF16});
  EXPECT_TRUE(std::isnan(values(softmax(masked, 1))[0]));
  masked.data<BFloat16>()[1] = BFloat16(2.0F);
  EXPECT_EQ(values(softmax(masked, 1)), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(values(log_softmax(masked, 1)), (std::vector<double>{-kInfinity, 0, -kInfinity}));
}

}  // namespace
}  // namespace lockstep
