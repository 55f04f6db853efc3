#include "nn/image_layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/conv/conv.h"
#include "core/ops/norm/batch_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "nn/statistics_log.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::nn {
namespace {

TEST(Conv2d, StartsNormalWithTheDeviationOfItsFanOut) {
  manual_seed(3);
  const Conv2d conv(32, 64, 3, {.bias = true});
  EXPECT_EQ(conv.weight.shape(), "[64, 32, 3, 3]");
  const double mean = conv.weight.mean().item<double>();
  const double deviation = std::sqrt(square(conv.weight).mean().item<double>());
  EXPECT_NEAR(mean, 0, 1e-3);
  EXPECT_NEAR(deviation, std::sqrt(2.0 / (64 * 9)), 1e-3);
  EXPECT_EQ(values(conv.bias), std::vector<double>(64, 0.0));
}

TEST(Conv2d, AppliesItsOptions) {
  manual_seed(3);
  const Conv2d conv(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2, .bias = true});
  conv.bias.data<float>()[2] = 1.5F;
  const Tensor x = random_tensor({2, 4, 7, 8});
  expect_near(conv.forward(x), conv2d(x, conv.weight, conv.bias, {2}, {1}, {1}, 2), 0, 0);
  EXPECT_EQ(conv.forward(x).shape(), "[2, 6, 4, 4]");
  EXPECT_FALSE(Conv2d(4, 6, 1).bias.defined());
}

TEST(BatchNorm2d, TracksBatchesInTrainingOnly) {
  BatchNorm2d norm(3, 1e-5, 0.2);
  const Tensor x = random_tensor({4, 3, 5, 5}) * 3.0 + 2.0;
  norm.forward(x);
  norm.forward(x);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 2);
  const Tensor mean = x.mean({0, 2, 3});
  expect_near(norm.running_mean, mean * (1 - 0.8 * 0.8), 1e-5, 1e-5);
  const std::vector<double> before = values(norm.running_var);
  norm.eval();
  const Tensor out = norm.forward(x);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 2);
  EXPECT_EQ(values(norm.running_var), before);
  expect_near(
      out, batch_norm(x, norm.weight, norm.bias, norm.running_mean, norm.running_var, false), 0, 0);
}

TEST(BatchNorm2d, TellsALogWhatItFindsAndLeavesItsStatistics) {
  manual_seed(3);
  const Tensor x = random_tensor({4, 3, 5, 5}) * 3.0 + 2.0;
  BatchNorm2d norm(3, 1e-5, 0.2);
  const BatchNorm2d moved(3, 1e-5, 0.2);
  const Tensor expected = moved.forward(x);
  {
    const StatisticsLog log(norm);
    expect_near(norm.forward(x), expected, 0, 0);
    EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 0);
    EXPECT_EQ(values(norm.running_mean), std::vector<double>(3, 0.0));
    EXPECT_EQ(values(norm.running_var), std::vector<double>(3, 1.0));
    ASSERT_EQ(log.counters().size(), 1u);
    EXPECT_TRUE(log.counters()[0].is_same(norm.num_batches_tracked));
    ASSERT_EQ(log.moves().size(), 2u);
    EXPECT_TRUE(log.moves()[0].running.is_same(norm.running_mean));
    EXPECT_TRUE(log.moves()[1].running.is_same(norm.running_var));
    const std::vector<Tensor> after = {moved.running_mean, moved.running_var};
    for (size_t i = 0; i < 2; ++i) {
      const StatisticsLog::Move& move = log.moves()[i];
      const Tensor by_hand =
          move.running.to(DType::kF64) * (1 - move.momentum) + move.found * move.momentum;
      expect_near(by_hand.to(DType::kF32), after[i], 0, 0);
    }
    norm.eval();
    norm.forward(x);
    EXPECT_EQ(log.moves().size(), 2u);
    norm.train();
  }
  norm.forward(x);
  expect_near(norm.running_mean, moved.running_mean, 0, 0);
}

TEST(BatchNorm2d, CanBeGivenAnotherNormForTraining) {
  const Tensor x = random_tensor({4, 3, 5, 5});
  BatchNorm2d norm(3, 1e-5, 0.2);
  int calls = 0;
  norm.set_training_norm([&](const Tensor& input, const Tensor& weight, const Tensor& bias,
                             const Tensor& mean, const Tensor& var, double momentum,
                             double epsilon) {
    ++calls;
    return batch_norm(input, weight, bias, mean, var, true, momentum, epsilon) * 2.0;
  });
  const BatchNorm2d plain(3, 1e-5, 0.2);
  {
    // A custom normalization updates its statistics itself, even with a StatisticsLog active.
    const StatisticsLog log(norm);
    expect_near(norm.forward(x), plain.forward(x) * 2.0, 0, 0);
    EXPECT_TRUE(log.moves().empty());
    EXPECT_TRUE(log.counters().empty());
  }
  expect_near(norm.running_var, plain.running_var, 0, 0);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
  norm.eval();
  norm.forward(x);
  EXPECT_EQ(calls, 1);
  norm.train();
  norm.set_training_norm({});
  expect_near(norm.forward(x), plain.forward(x), 0, 0);
}

TEST(BatchNorm2d, BuffersHaveTheNamesThatOtherProgramsUse) {
  const BatchNorm2d norm(3);
  std::vector<std::string> names;
  for (const NamedParameter& buffer : norm.named_buffers()) names.push_back(buffer.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"running_mean", "running_var", "num_batches_tracked"}));
}

}  // namespace
}  // namespace lockstep::nn
