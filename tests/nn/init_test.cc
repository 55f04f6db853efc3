#include "nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "nn/conv_layers.h"
#include "nn/layers.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::nn {
namespace {

double deviation(const Tensor& x) { return std(x).item<double>(); }
double largest(const Tensor& x) { return max(abs(x)).item<double>(); }

/// Uniform numbers up to `bound`, of which some come near it.
void expect_uniform(const Tensor& x, double bound) {
  EXPECT_LE(largest(x), bound);
  EXPECT_GE(largest(x), 0.97 * bound);
  EXPECT_NEAR(deviation(x), bound / std::sqrt(3.0), 0.05 * bound);
  EXPECT_NEAR(x.mean().item<double>(), 0, 0.05 * bound);
}

TEST(Init, ConstantsAndIdentities) {
  const Tensor x = random_tensor({2, 3}).set_requires_grad();
  EXPECT_TRUE(init::constant_(x, 2.5).is_same(x));
  EXPECT_EQ(values(x), Numbers(6, 2.5));
  EXPECT_EQ(values(init::zeros_(x)), Numbers(6, 0));
  EXPECT_EQ(values(init::ones_(x)), Numbers(6, 1));
  EXPECT_EQ(values(init::eye_(x)), (Numbers{1, 0, 0, 0, 1, 0}));
  EXPECT_TRUE(x.is_leaf());
}

TEST(Init, DiracKeepsChannelsAsTheyAre) {
  Conv1d conv(4, 4, 3, {.padding = 1, .groups = 2, .bias = false});
  init::dirac_(conv.weight, 2);
  const Tensor x = random_tensor({1, 4, 5});
  expect_near(conv.forward(x), x, 0, 0);
}

TEST(Init, UniformAndNormalHaveTheirBoundsAndMoments) {
  manual_seed(4);
  const Tensor x = zeros({50, 100});
  init::uniform_(x, -2, 2);
  expect_uniform(x, 2);
  init::normal_(x, 3, 0.5);
  EXPECT_NEAR(x.mean().item<double>(), 3, 0.03);
  EXPECT_NEAR(deviation(x), 0.5, 0.02);
}

TEST(Init, TruncatedNormalStaysInItsRangeWithTheShapeOfTheNormal) {
  manual_seed(4);
  const Tensor x = init::trunc_normal_(zeros({100, 200}), 1, 2, 0, 4);
  EXPECT_GE(min(x).item<double>(), 0);
  EXPECT_LE(max(x).item<double>(), 4);
  // Mean and deviation of a normal (1, 2) between 0 and 4, by numerical integration.
  EXPECT_NEAR(x.mean().item<double>(), 1.7125, 0.03);
  EXPECT_NEAR(deviation(x), 1.0588, 0.03);
  expect_error<Error>([] { init::trunc_normal_(zeros({1}), 0, 1, 2, 1); }, "[trunc_normal_]");
}

TEST(Init, XavierAndKaimingFollowTheFans) {
  manual_seed(4);
  const Tensor x = zeros({64, 32, 3});
  const init::Fans fans = init::fans_of(x);
  EXPECT_EQ(fans.in, 96);
  EXPECT_EQ(fans.out, 192);
  expect_uniform(init::xavier_uniform_(x, 2), 2 * std::sqrt(6.0 / 288));
  EXPECT_NEAR(deviation(init::xavier_normal_(x)), std::sqrt(2.0 / 288), 2e-3);
  expect_uniform(init::kaiming_uniform_(x, std::sqrt(5.0)), 1 / std::sqrt(96.0));
  expect_uniform(init::kaiming_uniform_(x, 0, init::FanMode::kFanOut, "relu"),
                 std::sqrt(6.0 / 192));
  EXPECT_NEAR(deviation(init::kaiming_normal_(x, 0, init::FanMode::kFanIn, "tanh")),
              5.0 / 3 / std::sqrt(96.0), 4e-3);
  EXPECT_EQ(init::fans_of(zeros({8, 4, 3, 5, 2})).in, 4 * 3 * 5 * 2);
  EXPECT_EQ(init::fans_of(zeros({8, 4, 3, 5, 2})).out, 8 * 3 * 5 * 2);
  expect_error<ShapeError>([] { init::fans_of(zeros({3})); }, "[init]", "[3]");
}

TEST(Init, GainsArePytorchs) {
  EXPECT_EQ(init::calculate_gain("linear"), 1);
  EXPECT_EQ(init::calculate_gain("conv_transpose2d"), 1);
  EXPECT_EQ(init::calculate_gain("relu"), std::sqrt(2.0));
  EXPECT_NEAR(init::calculate_gain("leaky_relu"), std::sqrt(2 / 1.0001), 1e-15);
  EXPECT_NEAR(init::calculate_gain("leaky_relu", 2), std::sqrt(2.0 / 5), 1e-15);
  EXPECT_EQ(init::calculate_gain("selu"), 0.75);
  expect_error<Error>([] { init::calculate_gain("sine"); }, "[calculate_gain]", "\"sine\"");
}

TEST(Init, OrthogonalRowsOrColumnsHaveLengthOne) {
  manual_seed(4);
  for (const Dims& sizes : {Dims{5, 12}, Dims{12, 5}, Dims{4, 2, 3}, Dims{6, 6}}) {
    const Tensor x = init::orthogonal_(zeros(sizes), 2);
    const Tensor rows = x.view({sizes[0], x.numel() / sizes[0]});
    const bool wide = rows.size(0) <= rows.size(1);
    const Tensor gram = wide ? rows.matmul(rows.t()) : rows.t().matmul(rows);
    expect_near(gram, init::eye_(zeros({gram.size(0), gram.size(0)})) * 4.0, 2e-6, 0);
  }
}

TEST(Init, SparseZeroesItsShareOfEachColumn) {
  manual_seed(4);
  const Tensor x = init::sparse_(zeros({10, 7}), 0.25);
  for (int64_t column = 0; column < 7; ++column) {
    EXPECT_EQ(count_nonzero(x.select(1, column)).item<int64_t>(), 7);
  }
}

TEST(Layers, StartWithPytorchsDefaults) {
  manual_seed(4);
  const Linear linear(64, 100);
  expect_uniform(linear.weight, 1.0 / 8);
  expect_uniform(linear.bias, 1.0 / 8);
  expect_uniform(Bilinear(16, 20, 30).weight, 1.0 / 4);
  const Conv1d conv(32, 100, 4, {.groups = 2});
  expect_uniform(conv.weight, 1.0 / 8);
  expect_uniform(conv.bias, 1.0 / 8);
  expect_uniform(ConvTranspose1d(100, 16, 4).weight, 1.0 / 8);
  const Embedding embedding(100, 50, {.padding_idx = -1});
  EXPECT_NEAR(deviation(embedding.weight.slice(0, 0, 99)), 1, 0.03);
  EXPECT_EQ(largest(embedding.weight.select(0, 99)), 0);
}

TEST(Embedding, KeepsWhatItWasMadeFrom) {
  const Tensor rows = random_tensor({3, 2});
  const Embedding frozen = Embedding::from_pretrained(rows);
  EXPECT_FALSE(frozen.weight.requires_grad());
  expect_near(frozen.forward(tensor_from<int64_t>({2, 0}, {2})).select(0, 0), rows.select(0, 2), 0,
              0);
  EXPECT_TRUE(Embedding::from_pretrained(random_tensor({3, 2}), false).weight.requires_grad());
  expect_error<IndexError>([] { Embedding(3, 2, {.padding_idx = 3}); }, "[embedding]", "3");
}

}  // namespace
}  // namespace lockstep::nn
