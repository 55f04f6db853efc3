#include "core/ops/norm/norm.h"

#include <gtest/gtest.h>

#include "core/ops/norm/stream_norm.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/norm/stream_norm.h"
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

/// Results of the norms of a stream, and their gradients for given gradients of the results.
std::vector<Tensor> stream_norm_of(const std::vector<Tensor>& t, bool centre, DType dtype) {
  const Dims row{t[0].size(-1)};
  const OptionalTensor bias = centre ? OptionalTensor(t[3]) : OptionalTensor();
  const auto [y, sum, mean, rstd] =
      stream_sum_norm(t[0], t[1], row, t[2], bias, 1e-5, centre, dtype);
  const OptionalTensor given_mean = centre ? OptionalTensor(mean) : OptionalTensor();
  const auto [dx, narrow, dw, db] =
      stream_norm_backward(t[4].to(dtype), t[0], sum, row, given_mean, rstd, t[2], t[1].dtype(),
                           {true, true, true, centre});
  std::vector<Tensor> results = {y, sum, rstd, dx, narrow, dw};
  if (centre) results.insert(results.end(), {mean, db});
  return results;
}

TEST(CudaNorm, OfAStreamAgreesWithTheCpuForRowsOfAnyLength) {
  for (const auto& [stream, beside] :
       {std::pair(DType::kF32, DType::kF32), std::pair(DType::kF32, DType::kBF16),
        std::pair(DType::kF32, DType::kF16), std::pair(DType::kF64, DType::kF64)}) {
    for (const int64_t n : {1, 5, 8, 40, 256, 1000, 1027, 2048, 3000, 4100, 8200}) {
      SCOPED_TRACE(testing::Message() << to_string(beside) << ", " << n << " elements");
      const std::vector<Tensor> inputs = {
          random_tensor({21, n}, stream, 1), random_tensor({21, n}, beside, 2),
          random_tensor({n}, stream, 3), random_tensor({n}, stream, 4),
          random_tensor({21, n}, stream, 5)};
      for (const bool centre : {true, false}) {
        expect_agreement(
            inputs, [&](const std::vector<Tensor>& t) { return stream_norm_of(t, centre, beside); },
            3 * rounding_of(beside));
      }
    }
  }
}

TEST(CudaNorm, OfAStreamSumsTheParametersGradientsOverManyGroups) {
  for (const int64_t n : {24, 1027, 2048}) {
    const std::vector<Tensor> inputs = {
        random_tensor({2, 600, n}, DType::kF32, 1), random_tensor({2, 600, n}, DType::kBF16, 2),
        random_tensor({n}, DType::kF32, 3), random_tensor({n}, DType::kF32, 4),
        random_tensor({2, 600, n}, DType::kF32, 5)};
    expect_agreement(
        inputs, [&](const std::vector<Tensor>& t) { return stream_norm_of(t, true, DType::kBF16); },
        10 * rounding_of(DType::kBF16));
  }
}

TEST(CudaNorm, OfAStreamWithoutRowsHasNoGradientOfParameters) {
  expect_agreement(
      {random_tensor({0, 4}), random_leaf({4}, DType::kF32, 2)}, [](const std::vector<Tensor>& t) {
        return std::vector<Tensor>{layer_norm_of_stream(t[0], {4}, t[1], {}, 1e-5, DType::kBF16)};
      });
}

TEST(CudaNorm, GroupsOfAStreamsRowsAreOfABoundedNumber) {
  for (const int64_t rows : {1, 31, 1000, 1 << 20}) {
    for (const int64_t threads : {32, 192, 512}) {
      const int64_t group = cuda::stream_norm_group(rows, threads);
      EXPECT_GE(group, 8);
      EXPECT_LE((rows + group - 1) / group, 132 * 16);
    }
  }
}

TEST(CudaNorm, ABlocksThreadsHoldAStreamsRow) {
  using Kind = cuda::StreamNormColumns::Kind;
  for (const int64_t n : {1, 4, 32, 768, 2048, 2052, 4096, 8192}) {
    for (const bool aligned : {false, true}) {
      const auto columns = cuda::stream_norm_columns(DType::kF32, n, aligned && n % 4 == 0);
      EXPECT_EQ(columns.threads % 32, 0u);
      EXPECT_LE(columns.threads, 512u);
      if (columns.kind == Kind::kStream) continue;
      const int64_t held = columns.threads * columns.each * (columns.kind == Kind::kPacks ? 4 : 1);
      EXPECT_GE(held, n);
      EXPECT_LT(held, n + 4 * 32 * columns.each);
    }
  }
  EXPECT_EQ(cuda::stream_norm_columns(DType::kF32, 8196, true).kind, Kind::kStream);
  EXPECT_EQ(cuda::stream_norm_columns(DType::kF64, 768, true).kind, Kind::kColumns);
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
