#include "core/ops/norm/stream_norm.h"

#include <gtest/gtest.h>

#include <cstring>

#include "autograd/autograd.h"
#include "core/ops/factory/copy.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr DType kReaders[] = {DType::kF32, DType::kBF16, DType::kF16};
constexpr double kNormEpsilon = 1e-5;

void expect_bits(const Tensor& got, const Tensor& want) {
  ASSERT_TRUE(same(got.sizes(), want.sizes()) && got.dtype() == want.dtype());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.nbytes()), 0);
}

/// A residual stream of `width` and what a norm of it takes, in f32.
struct StreamCase {
  explicit StreamCase(int64_t width)
      : row{width},
        stream(random_tensor({70, width}, DType::kF32, 1)),
        weight(random_tensor({width}, DType::kF32, 2)),
        bias(random_tensor({width}, DType::kF32, 3)),
        carried(random_tensor({70, width}, DType::kF32, 4)) {}

  Dims row;
  Tensor stream, weight, bias, carried;
};

TEST(StreamNorm, IsTheNormRoundedToTheReadersDType) {
  for (const int64_t width : {5, 48, 768, 9000}) {
    const StreamCase of(width);
    const auto [normed, mean, rstd] =
        native_layer_norm(of.stream, of.row, of.weight, of.bias, kNormEpsilon);
    const Tensor root = rms_norm(of.stream, of.row, of.weight, kNormEpsilon);
    for (const DType dtype : kReaders) {
      SCOPED_TRACE(testing::Message() << width << " " << to_string(dtype));
      const auto [got, got_mean, got_rstd] =
          stream_norm(of.stream, of.row, of.weight, of.bias, kNormEpsilon, true, dtype);
      expect_bits(got, normed.to(dtype));
      expect_bits(got_mean, mean);
      expect_bits(got_rstd, rstd);
      expect_bits(rms_norm_of_stream(of.stream, of.row, of.weight, kNormEpsilon, dtype),
                  root.to(dtype));
    }
  }
}

TEST(StreamNorm, OfASumIsThatOfTheSeparateSum) {
  for (const DType branch_dtype : kReaders) {
    for (const DType dtype : kReaders) {
      const StreamCase of(48);
      const Tensor branch = of.carried.to(branch_dtype);
      const auto [normed, sum] =
          layer_norm_of_sum(of.stream, branch, of.row, of.weight, of.bias, kNormEpsilon, dtype);
      expect_bits(sum, of.stream + branch.to(DType::kF32));
      expect_bits(normed,
                  layer_norm_of_stream(sum, of.row, of.weight, of.bias, kNormEpsilon, dtype));
    }
  }
}

TEST(StreamNorm, BackwardAddsTheCarriedGradientAndNarrowsTheSum) {
  for (const DType dtype : kReaders) {
    const StreamCase of(768);
    const Tensor grad = random_tensor({70, 768}, DType::kF32, 5).to(dtype);
    const auto [normed, mean, rstd] =
        native_layer_norm(of.stream, of.row, of.weight, of.bias, kNormEpsilon);
    const auto [dx, dw, db] =
        native_layer_norm_backward(grad.to(DType::kF32), of.stream, of.row, mean, rstd, of.weight,
                                   of.bias, {true, true, true});
    const auto [got, narrow, got_dw, got_db] =
        stream_norm_backward(grad, of.carried, of.stream, of.row, mean, rstd, of.weight,
                             DType::kBF16, {true, true, true, true});
    expect_bits(got, of.carried + dx);
    expect_bits(narrow, got.to(DType::kBF16));
    expect_bits(got_dw, dw);
    expect_bits(got_db, db);
    const auto [none, alone, no_dw, no_db] =
        stream_norm_backward(grad, of.carried, of.stream, of.row, mean, rstd, of.weight,
                             DType::kBF16, {false, true, false, false});
    EXPECT_FALSE(none.defined());
    expect_bits(alone, narrow);
  }
}

TEST(StreamNorm, TheBranchGetsItsGradientInItsDType) {
  const StreamCase of(48);
  const Tensor stream = of.stream.detach().set_requires_grad();
  const Tensor branch = of.carried.to(DType::kBF16).set_requires_grad();
  const auto [normed, sum] =
      layer_norm_of_sum(stream, branch, of.row, of.weight, of.bias, kNormEpsilon, DType::kBF16);
  const Tensor through = random_tensor({70, 48}, DType::kF32, 6).to(DType::kBF16);
  const std::vector<Tensor> got = grad({normed, sum}, {stream, branch}, {through, of.carried});
  EXPECT_EQ(got[0].dtype(), DType::kF32);
  expect_bits(got[1], got[0].to(DType::kBF16));
}

TEST(StreamNorm, HalvesHaveTheSameBitsOnAnyNumberOfThreads) {
  const Tensor stream = random_tensor({515, 131}, DType::kF32, 1);
  const Tensor branch = random_tensor({515, 131}, DType::kF32, 2).to(DType::kBF16);
  const Tensor weight = random_tensor({131}, DType::kF32, 3);
  expect_same_bits_for_any_threads([&] {
    const auto [normed, sum, mean, rstd] =
        stream_sum_norm(stream, branch, {131}, weight, {}, kNormEpsilon, true, DType::kBF16);
    const auto [dx, narrow, dw, db] = stream_norm_backward(
        normed, stream, sum, Dims{131}, mean, rstd, weight, DType::kBF16, {true, true, true, true});
    return std::vector<Tensor>{normed, sum, mean, rstd, dx, narrow, dw, db};
  });
}

TEST(StreamNorm, RefusesWhatItCannotReadOrWrite) {
  const StreamCase of(8);
  EXPECT_THROW(stream_norm(of.stream.to(DType::kBF16), of.row, {}, {}, kNormEpsilon, true, {}),
               DTypeError);
  EXPECT_THROW(stream_norm(of.stream, of.row, {}, {}, kNormEpsilon, true, DType::kF64), DTypeError);
  EXPECT_THROW(
      stream_norm(of.stream, of.row, of.weight.to(DType::kBF16), {}, kNormEpsilon, true, {}),
      DTypeError);
  EXPECT_THROW(stream_norm(of.stream, of.row, {}, of.bias, kNormEpsilon, false, {}), ShapeError);
  EXPECT_THROW(
      stream_sum_norm(of.stream, of.stream.slice(0, 1), of.row, {}, {}, kNormEpsilon, true, {}),
      ShapeError);
}

TEST(StreamNorm, OfAHalfStreamIsTheNormOfThatDType) {
  const StreamCase of(48);
  const Tensor narrow = of.stream.to(DType::kBF16);
  const Tensor weight = of.weight.to(DType::kBF16);
  expect_bits(rms_norm_of_stream(narrow, of.row, weight, kNormEpsilon, DType::kBF16),
              rms_norm(narrow, of.row, weight, kNormEpsilon));
}

}  // namespace
}  // namespace lockstep
