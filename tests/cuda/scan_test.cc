#include "kernels/cuda/reduce/scan.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

std::vector<Tensor> scans(const Tensor& x, int64_t dim) {
  std::vector<Tensor> results{cumsum(x, dim), cumprod(x, dim)};
  if (is_floating(x.dtype())) results.push_back(logcumsumexp(x, dim));
  return results;
}

TEST(CudaScan, AgreesWithTheCpuAlongRowsAndColumns) {
  for (const DType dtype : kFloating) {
    for (const int64_t n : {1, 8, 9, 1000, 1024, 1025, 5000}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      const auto along = [](int64_t dim) {
        return [dim](const std::vector<Tensor>& t) { return scans(t[0], dim); };
      };
      const Tensor x = random_tensor({3, n}, dtype);
      expect_agreement({x}, along(1), 5 * rounding_of(dtype));
      expect_agreement({x}, along(0), rounding_of(dtype));
    }
  }
}

TEST(CudaScan, IntegersWrapAroundAsOnTheCpu) {
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kU8, DType::kBool}) {
    const Tensor x = mul(random_tensor({2, 3000}), 5).to(DType::kI64).to(dtype);
    expect_agreement(
        {x}, [](const std::vector<Tensor>& t) { return scans(t[0], 1); }, 0);
    expect_agreement(
        {x}, [](const std::vector<Tensor>& t) { return scans(t[0], 0); }, 0);
  }
}

TEST(CudaScan, LongRowsAreTakenInParts) {
  EXPECT_EQ(cuda::scan_row_part(1, 8192), 8192);
  EXPECT_EQ(cuda::scan_row_part(1, 528 * 10000), 10000);
  EXPECT_EQ(cuda::scan_row_part(600, 1 << 20), 1 << 20);
  const auto of_rows = [](const std::vector<Tensor>& t) { return scans(t[0], 1); };
  expect_agreement({random_tensor({2, 40000})}, of_rows, 1e-5);
  expect_agreement({mul(random_tensor({2, 40000}), 5).to(DType::kI32)}, of_rows, 0);
}

TEST(CudaScan, LongLinesAreTakenInPartsWhereTheyAreFew) {
  EXPECT_EQ(cuda::scan_line_part(132 * 1024, 1 << 20), 1 << 20) << "a line for every thread";
  EXPECT_EQ(cuda::scan_line_part(1024, 132 * 100), 100);
  EXPECT_EQ(cuda::scan_line_part(2, 1 << 20), 1024) << "no more parts than a warp scans soon";
  EXPECT_EQ(cuda::scan_line_part(2, 100), 64);
  EXPECT_EQ(cuda::scan_line_part(200000, 10), 64) << "one part";
  for (const Dims& sizes : {Dims{2, 3001, 3}, Dims{1, 65, 2}, Dims{3, 128, 1}}) {
    for (const int64_t dim : {0, 1}) {
      const auto along = [dim](const std::vector<Tensor>& t) { return scans(t[0], dim); };
      expect_agreement({random_tensor(sizes)}, along, 1e-5);
      expect_agreement({mul(random_tensor(sizes), 5).to(DType::kI32)}, along, 0);
    }
  }
}

TEST(CudaScan, InfinitiesAndNanAreThoseOfTheCpu) {
  const Tensor x = random_tensor({3, 40});
  std::fill_n(x.data<float>(), 20, -std::numeric_limits<float>::infinity());
  x.data<float>()[40 + 9] = std::numeric_limits<float>::infinity();
  x.data<float>()[80 + 9] = std::numeric_limits<float>::quiet_NaN();
  expect_agreement({x}, [](const std::vector<Tensor>& t) { return scans(t[0], 1); });
}

TEST(CudaScan, LinearRecurrencesAgreeWithTheCpu) {
  for (const DType dtype : kFloating) {
    for (const auto& [length, dim] : {std::pair{50, 0}, {50, 1}, {50, 2}, {3000, 1}, {9000, 2}}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << " along " << dim << ", " << length);
      Dims sizes{2, 3, 2};
      sizes[static_cast<size_t>(dim)] = length;
      expect_agreement(
          {random_tensor(sizes, dtype, 1), random_tensor(sizes, dtype, 2)},
          [dim = dim](const std::vector<Tensor>& t) {
            return std::vector<Tensor>{linear_recurrence(mul(t[0], 0.5), t[1], dim)};
          },
          2 * rounding_of(dtype));
    }
  }
}

TEST(CudaScan, DecaysThatOverflowLeaveAStateOfZeroAlone) {
  const Tensor decay = full({9000, 2}, 10, DType::kF64), input = zeros({9000, 2}, DType::kF64);
  expect_agreement({decay, input}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{linear_recurrence(t[0], t[1], 0)};
  });
}

}  // namespace
}  // namespace lockstep
