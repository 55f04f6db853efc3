#include "core/ops/norm/norm.h"

#include <gtest/gtest.h>

#include "kernels/cuda/norm/norm.h"
#include "tests/cuda/agreement.h"

namespace lockstep {
namespace {

/// The result, whose gradients are compared, and the statistics.
std::vector<Tensor> layer_norm_of(const std::vector<Tensor>& t, int64_t n) {
  const auto [y, mean, rstd] = native_layer_norm(t[0], {n}, t[1], t[2], 1e-5);
  return {y, mean, rstd};
}
std::vector<Tensor> rms_norm_of(const std::vector<Tensor>& t, int64_t n) {
  const auto [y, rstd] = fused_rms_norm(t[0], {n}, t[1], std::nullopt);
  return {y, rstd};
}

TEST(CudaNorm, AgreesWithTheCpuForRowsOfAnyLength) {
  for (const DType dtype : kFloating) {
    for (const int64_t n : {1, 5, 8, 40, 256, 1000, 1024, 1027, 2048, 3000, 8192, 8200, 9001}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      const std::vector<Tensor> inputs = {random_leaf({3, n}, dtype, 1), random_leaf({n}, dtype, 2),
                                          random_leaf({n}, dtype, 3)};
      const double tolerance = 3 * rounding_of(dtype);
      expect_agreement(
          inputs, [&](const std::vector<Tensor>& t) { return layer_norm_of(t, n); }, tolerance);
      expect_agreement(
          {inputs[0], inputs[1]}, [&](const std::vector<Tensor>& t) { return rms_norm_of(t, n); },
          tolerance);
    }
  }
}

TEST(CudaNorm, ParametersMayBeAbsent) {
  for (const int64_t n : {8, 9001}) {
    const Tensor x = random_leaf({3, n}), weight = random_leaf({n}, DType::kF32, 2);
    for (const Tensor& given : {weight, Tensor()}) {
      expect_agreement({x, given}, [&](const std::vector<Tensor>& t) {
        return std::vector<Tensor>{
            layer_norm(t[0], {n}, t[1].defined() ? OptionalTensor(t[1]) : OptionalTensor(), {})};
      });
      expect_agreement({x, given}, [&](const std::vector<Tensor>& t) {
        return std::vector<Tensor>{
            rms_norm(t[0], {n}, t[1].defined() ? OptionalTensor(t[1]) : OptionalTensor())};
      });
    }
  }
}

TEST(CudaNorm, GradientsOfParametersAreSumsOverAllRows) {
  for (const DType dtype : kFloating) {
    for (const int64_t n : {7, 24, 300}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << n << " elements");
      const std::vector<Tensor> inputs = {random_tensor({2, 700, n}, dtype, 1),
                                          random_leaf({n}, dtype, 2), random_leaf({n}, dtype, 3)};
      expect_agreement(
          inputs, [&](const std::vector<Tensor>& t) { return layer_norm_of(t, n); },
          dtype == DType::kF64 ? 1e-11 : 10 * rounding_of(dtype));
    }
  }
}

TEST(CudaNorm, WithoutRowsTheParametersHaveNoGradient) {
  expect_agreement(
      {random_tensor({0, 4}), random_leaf({4}, DType::kF32, 2), random_leaf({4}, DType::kF32, 3)},
      [](const std::vector<Tensor>& t) { return layer_norm_of(t, 4); });
}

TEST(CudaNorm, RowsWithoutElementsHaveTheCpusStatistics) {
  expect_agreement({random_tensor({3, 0}), random_tensor({0}), random_tensor({0})},
                   [](const std::vector<Tensor>& t) { return layer_norm_of(t, 0); });
}

TEST(CudaNorm, GroupsOfRowsCoverThemInABoundedNumberOfBlocks) {
  for (const int64_t rows : {1, 31, 33, 1000, 1 << 20}) {
    for (const int64_t n : {1, 768, 100000}) {
      const int64_t group = cuda::norm_group(rows, n, 4);
      EXPECT_EQ(group % cuda::kNormRowThreads, 0);
      EXPECT_GE(group, 32);
      EXPECT_LE((rows + group - 1) / group, 512);
    }
  }
}

}  // namespace
}  // namespace lockstep
