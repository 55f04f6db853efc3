#include "nn/models/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"
#include "tests/nn/names.h"

namespace lockstep::nn {
namespace {

using ::testing::ElementsAre;

ResnetOptions small_resnet() {
  return {.channels = 1, .height = 8, .width = 6, .classes = 4, .base_width = 8, .blocks = {1, 1}};
}

TEST(Resnet, NamesAreTorchvisions) {
  const Resnet model(small_resnet());
  EXPECT_THAT(names(model.named_parameters()),
              ElementsAre("conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight",
                          "layer1.0.bn1.weight", "layer1.0.bn1.bias", "layer1.0.conv2.weight",
                          "layer1.0.bn2.weight", "layer1.0.bn2.bias", "layer2.0.conv1.weight",
                          "layer2.0.bn1.weight", "layer2.0.bn1.bias", "layer2.0.conv2.weight",
                          "layer2.0.bn2.weight", "layer2.0.bn2.bias",
                          "layer2.0.downsample.0.weight", "layer2.0.downsample.1.weight",
                          "layer2.0.downsample.1.bias", "fc.weight", "fc.bias"));
  EXPECT_THAT(
      names(model.named_buffers()),
      testing::IsSupersetOf({"bn1.running_mean", "bn1.running_var", "bn1.num_batches_tracked",
                             "layer2.0.downsample.1.running_var"}));
  EXPECT_EQ(model.named_buffers().size(), 3u * 6);
}

TEST(Resnet, HasTheSizeOfResnet18) {
  // Parameters as torchvision counts them; FLOPs are twice its number of multiply-adds.
  const Resnet model({.channels = 3,
                      .height = 224,
                      .width = 224,
                      .classes = 1000,
                      .base_width = 64,
                      .blocks = {2, 2, 2, 2},
                      .stem = ResnetStem::kImageNet});
  EXPECT_EQ(model.parameter_count(), 11689512);
  EXPECT_NEAR(model.forward_flops(), 2 * 1.814e9, 2e6);
}

TEST(Resnet, LogitsHaveOneRowPerImage) {
  const NoGradGuard no_grad;
  Resnet model(small_resnet());
  EXPECT_EQ(model.forward(random_tensor({5, 1, 8, 6})).shape(), "[5, 4]");
  EXPECT_EQ(logits_of(model, random_tensor({5, 48})).shape(), "[5, 4]");
  ResnetOptions options = small_resnet();
  options.stem = ResnetStem::kImageNet;
  Resnet deep(options);
  EXPECT_EQ(deep.forward(random_tensor({2, 1, 8, 6})).shape(), "[2, 4]");
}

TEST(Resnet, ABlockAddsItsInput) {
  const NoGradGuard no_grad;
  manual_seed(4);
  BasicBlock block(8, 8, 1);
  block.bn2.weight.zero_();
  const Tensor x = random_tensor({2, 8, 5, 5});
  expect_near(block.forward(x), relu(x), 0, 0);
  EXPECT_EQ(block.downsample_conv, nullptr);
}

TEST(Resnet, EveryParameterReceivesAGradient) {
  manual_seed(4);
  Resnet model(small_resnet());
  sum_of_losses(model, random_tensor({6, 48}), tensor_from<int64_t>({0, 1, 2, 3, 0, 1}, {6}))
      .backward();
  for (const NamedParameter& parameter : model.named_parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_EQ(parameter.tensor.grad().shape(), parameter.tensor.shape()) << parameter.name;
  }
}

TEST(Resnet, OutsideTrainingASampleDoesNotSeeItsNeighbours) {
  const NoGradGuard no_grad;
  manual_seed(4);
  Resnet model(small_resnet());
  const Tensor x = random_tensor({6, 1, 8, 6});
  model.forward(x);  // updates the running statistics
  model.eval();
  const Tensor all = model.forward(x);
  const Tensor one = model.forward(x.slice(0, 2, 3).contiguous());
  expect_near(one, all.slice(0, 2, 3).contiguous(), 1e-5, 1e-5);
  expect_near(model.forward(x), all, 0, 0);
}

TEST(Resnet, TrainingBitsDoNotDependOnThreads) {
  const Tensor x = random_tensor({32, 48});
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 32; ++i) labels.push_back(i % 4);
  const Tensor target = tensor_from<int64_t>(labels, {32});
  expect_same_bits_for_any_threads([&] {
    manual_seed(4);
    Resnet model(
        {.channels = 1, .height = 8, .width = 6, .classes = 4, .base_width = 32, .blocks = {1, 1}});
    const Tensor loss = sum_of_losses(model, x, target);
    loss.backward();
    std::vector<Tensor> results{loss.detach()};
    for (const Tensor& parameter : model.parameters()) results.push_back(parameter.grad());
    for (const NamedParameter& buffer : model.named_buffers()) results.push_back(buffer.tensor);
    return results;
  });
}

TEST(Resnet, LearnsWhereTheStripeIs) {
  manual_seed(5);
  Resnet model(small_resnet());
  // Noisy images with one bright row or column, whose position depends on the class.
  const int64_t count = 32;
  const Tensor x = random_tensor({count, 1, 8, 6}) * 0.3;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(i % 4);
    float* image = x.data<float>() + i * 48;
    for (int64_t k = 0; k < 6; ++k) {
      const int64_t places[] = {k, 42 + k, 6 * k, 6 * k + 5};
      image[places[i % 4]] += 2;
    }
  }
  const Tensor target = tensor_from<int64_t>(labels, {count});
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    const Tensor total = sum_of_losses(model, x, target);
    losses.push_back(total.item<double>() / static_cast<double>(count));
    total.backward();
    const NoGradGuard no_grad;
    for (const Tensor& parameter : model.parameters()) {
      sub_(parameter, parameter.grad() / static_cast<double>(count), 0.2);
      parameter.set_grad({});
    }
  }
  EXPECT_GT(losses.front(), 1.0);
  EXPECT_LT(losses.back(), 0.1);

  const NoGradGuard no_grad;
  model.eval();
  const Tensor chosen = logits_of(model, x).argmax(1);
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) right += chosen.data<int64_t>()[i] == i % 4 ? 1 : 0;
  EXPECT_GE(right, 30) << "running statistics do not fit the training ones";
}

TEST(Resnet, MistakesAreNamed) {
  Resnet model(small_resnet());
  expect_error<ShapeError>(
      [&] {
        model.forward(zeros({2, 3, 8, 6}));
      },
      "[resnet]", "[batch, 1, 8, 6]", "[2, 3, 8, 6]");
  ResnetOptions none = small_resnet();
  none.blocks = {};
  expect_error<ShapeError>([&] { Resnet{none}; }, "[resnet]", "at least one stage");
  none.blocks = {1, 0};
  expect_error<ShapeError>([&] { Resnet{none}; }, "[resnet]", "[1, 0]");
}

}  // namespace
}  // namespace lockstep::nn
