#include "nn/dropout.h"

#include <gtest/gtest.h>

#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::nn {
namespace {

TEST(Dropout, DropsItsShareInTrainingOnly) {
  manual_seed(2);
  Dropout layer(0.25);
  const Tensor x = ones({100, 100});
  const Tensor y = layer.forward(x);
  EXPECT_NEAR(static_cast<double>(count_nonzero(y).item<int64_t>()) / 1e4, 0.75, 0.02);
  EXPECT_NEAR(max(y).item<double>(), 1 / 0.75, 1e-6);
  layer.eval();
  EXPECT_TRUE(layer.forward(x).is_same(x));
}

TEST(ChannelDropout, DropsWholeChannels) {
  manual_seed(2);
  Dropout2d layer(0.5);
  const Tensor y = layer.forward(ones({50, 20, 2, 3}));
  const Tensor channels = y.sum({2, 3}).view({1000});
  int64_t kept = 0;
  for (const double sum : values(channels)) {
    EXPECT_TRUE(sum == 0 || sum == 12) << sum;
    kept += sum == 12 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / 1000, 0.5, 0.06);
  EXPECT_EQ(Dropout1d(0.5).forward(ones({3, 4})).shape(), "[3, 4]");
  layer.eval();
  const Tensor x = ones({1, 2, 3, 3});
  EXPECT_TRUE(layer.forward(x).is_same(x));
}

TEST(Dropout, RefusesProbabilitiesAndShapesThatAreNone) {
  expect_error<Error>([] { Dropout(1.5); }, "[dropout]", "1.5");
  expect_error<ShapeError>([] { Dropout2d().forward(ones({2, 3})); }, "[dropout]", "[2, 3]");
}

}  // namespace
}  // namespace lockstep::nn
