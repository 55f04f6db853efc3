#include "core/ops/image/pool.h"
#include "core/ops/image/upsample.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Upsample, OfLinesReadsNeighbours) {
  const Tensor x = tensor_of({0, 10}).view({1, 1, 2});
  EXPECT_EQ(values(upsample_nearest1d(x, {4})), (Numbers{0, 0, 10, 10}));
  EXPECT_EQ(values(upsample_linear1d(x, {4}, false)), (Numbers{0, 2.5, 7.5, 10}));
  EXPECT_EQ(values(upsample_linear1d(x, {3}, true)), (Numbers{0, 5, 10}));
  expect_error<ShapeError>([&] { upsample_linear1d(x, {0}, true); }, "[upsample_linear1d]");
  expect_error<ShapeError>([&] { upsample_nearest1d(x.squeeze(0), {3}); }, "[upsample_nearest1d]");
}

TEST(Upsample, OfAVolumeIsLinearAlongEachDimension) {
  const Tensor x = counting({1, 1, 2, 2, 2});  // 4 d + 2 h + w
  const Tensor y = upsample_trilinear3d(x, {3, 3, 3}, true);
  Numbers wanted;
  for (const double d : {0.0, 0.5, 1.0}) {
    for (const double h : {0.0, 0.5, 1.0}) {
      for (const double w : {0.0, 0.5, 1.0}) wanted.push_back(4 * d + 2 * h + w);
    }
  }
  EXPECT_EQ(values(y), wanted);
  EXPECT_EQ(values(upsample_nearest3d(x, {1, 4, 1})), (Numbers{0, 0, 2, 2}));
  EXPECT_EQ(values(upsample_nearest3d(x, {2, 2, 2})), values(x));
}

TEST(AdaptiveMaxPool, TakesTheFirstOfEqualsAndNan) {
  const auto [most, at] = adaptive_max_pool2d(ones({1, 3, 3}), {2});
  EXPECT_EQ(values(most), (Numbers{1, 1, 1, 1}));
  EXPECT_EQ(values(at), (Numbers{0, 1, 3, 4}));
  const Tensor x = tensor_of({1, kNaN, 3, 4}).view({1, 4});
  const auto [maxima, places] = adaptive_max_pool1d(x, {2});
  expect_values(maxima.flatten(), {kNaN, 4});
  expect_values(places.flatten(), {1, 3});
}

TEST(FractionalMaxPool, ReachesBothBordersForAnySample) {
  const Tensor x = counting({1, 1, 1, 7});
  for (const double sample : {0.0, 0.3, 0.999}) {
    const Tensor samples = tensor_of({sample, sample}).view({1, 1, 2});
    const auto [most, at] = fractional_max_pool2d(x, {1, 2}, {1, 3}, samples);
    EXPECT_EQ(values(most)[0], 1);
    EXPECT_EQ(values(most)[2], 6);
    EXPECT_EQ(values(most), values(at));
  }
  const Tensor samples = tensor_of({0.5, 0.5}).view({1, 1, 2});
  expect_error<ShapeError>(
      [&] {
        fractional_max_pool2d(x, {1, 2}, {1, 7}, samples);
      },
      "[fractional_max_pool2d]");
}

TEST(MaxUnpool, IsTheInverseOfMaxPooling) {
  const Tensor x = counting({1, 2, 4, 4});
  const auto [most, at] = max_pool2d_with_indices(x, {2});
  const Tensor y = max_unpool2d(most, at, {4, 4});
  const auto [again, again_at] = max_pool2d_with_indices(y, {2});
  EXPECT_EQ(values(again), values(most));
  EXPECT_EQ(values(y.sum()), values(most.sum()));
  expect_error<IndexError>([&] { max_unpool2d(most, at, {2, 2}); });
  expect_error<ShapeError>(
      [&] {
        max_unpool2d(most, at.slice(1, 0, 1), {4, 4});
      },
      "[max_unpool2d]");
}

}  // namespace
}  // namespace lockstep
