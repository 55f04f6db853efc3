#include <gtest/gtest.h>

#include <limits>

#include "core/ops/loss/loss.h"
#include "kernels/cuda/rows.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

using cuda::RowStrategy;

/// Compares both operators and their gradients along `dim` with the CPU.
void expect_softmax_of_the_cpu(const Tensor& x, int64_t dim, double tolerance) {
  for (const auto operation : {&softmax, &log_softmax}) {
    expect_agreement(
        {x},
        [&](const std::vector<Tensor>& t) {
          return std::vector<Tensor>{operation(t[0], dim, std::nullopt)};
        },
        tolerance);
  }
}

TEST(CudaRows, GoToTheSmallestGroupThatHoldsThem) {
  EXPECT_EQ(cuda::row_strategy(DType::kF32, 256, true), RowStrategy::kWarp8);
  EXPECT_EQ(cuda::row_strategy(DType::kF32, 260, true), RowStrategy::kWarp32);
  EXPECT_EQ(cuda::row_strategy(DType::kBF16, 1024, true), RowStrategy::kWarp32);
  EXPECT_EQ(cuda::row_strategy(DType::kBF16, 1032, true), RowStrategy::kBlock8);
  EXPECT_EQ(cuda::row_strategy(DType::kF32, 2052, true), RowStrategy::kBlock32);
  EXPECT_EQ(cuda::row_strategy(DType::kF32, 8193, false), RowStrategy::kStream);
  EXPECT_EQ(cuda::row_strategy(DType::kF32, 7, false), RowStrategy::kWarpScalar);
  EXPECT_EQ(cuda::row_strategy(DType::kF64, 1026, true), RowStrategy::kBlockScalar);
}

TEST(CudaSoftmax, AgreesWithTheCpuForRowsOfAnyLength) {
  for (const DType dtype : kFloating) {
    for (const int64_t n : {1, 5, 8, 40, 256, 1000, 1024, 1027, 2048, 3000, 8192, 8200, 20001}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      expect_softmax_of_the_cpu(random_leaf({3, n}, dtype), 1, rounding_of(dtype));
    }
  }
}

TEST(CudaSoftmax, RowsMayStartAnywhere) {
  for (const int64_t n : {16, 9000}) {
    const Tensor whole = random_tensor({2 * n + 3});
    const Tensor x = whole.slice(0, 3).view({2, n});
    expect_softmax_of_the_cpu(x, 1, 1e-6);
  }
}

TEST(CudaSoftmax, AgreesWithTheCpuAlongColumns) {
  for (const DType dtype : kFloating) {
    for (const int64_t inner : {2, 33, 64}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << inner << " columns");
      expect_softmax_of_the_cpu(random_leaf({3, 70, inner}, dtype), 1, rounding_of(dtype));
      expect_softmax_of_the_cpu(random_leaf({5, inner}, dtype), 0, rounding_of(dtype));
    }
  }
}

TEST(CudaSoftmax, ManyRowsAreAllTaken) {
  expect_softmax_of_the_cpu(random_leaf({40000, 3}), 1, 1e-5);
}

TEST(CudaSoftmax, InfinitiesAndNanAreThoseOfTheCpu) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t n : {4, 1500, 9001}) {
    const Tensor x = random_tensor({5, n});
    float* const rows = x.data<float>();
    std::fill_n(rows, n, -kInfinity);
    rows[n + n / 2] = kInfinity;
    rows[2 * n + n - 1] = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(rows + 3 * n, n - 1, -kInfinity);
    expect_softmax_of_the_cpu(x, 1, 1e-6);
    expect_softmax_of_the_cpu(x.transpose(0, 1).contiguous(), 0, 1e-6);
  }
}

TEST(CudaSoftmax, AGradientMayBeOfAnotherDtypeThanTheResult) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const int64_t n : {24, 1030, 8201}) {
      SCOPED_TRACE(n);
      expect_agreement(
          {random_leaf({2, n}, dtype)},
          [](const std::vector<Tensor>& t) {
            return std::vector<Tensor>{softmax(t[0], 1, DType::kF32)};
          },
          rounding_of(dtype));
      expect_agreement(
          {random_tensor({2, n}), random_tensor({2, n})},
          [&](const std::vector<Tensor>& t) {
            return std::vector<Tensor>{
                softmax_backward_data(t[0], softmax(t[1], 1), 1, dtype),
                log_softmax_backward_data(t[0], log_softmax(t[1], 0), 0, dtype)};
          },
          rounding_of(dtype));
    }
  }
}

}  // namespace
}  // namespace lockstep
