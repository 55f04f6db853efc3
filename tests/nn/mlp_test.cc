#include "nn/models/mlp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::nn {
namespace {

MlpOptions small_mlp(Activation activation = Activation::kRelu) {
  return {.inputs = 6, .hidden_widths = {5, 4}, .classes = 3, .activation = activation};
}

TEST(Mlp, AppliesTheActivationBetweenLayersOnly) {
  const NoGradGuard no_grad;
  const Tensor x = random_tensor({7, 6});
  for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
    manual_seed(1);
    Mlp model(small_mlp(activation));
    const auto act = [&](const Tensor& t) {
      return activation == Activation::kRelu ? relu(t) : gelu(t);
    };
    Tensor want = act(linear(x, model.layers[0]->weight, model.layers[0]->bias));
    want = act(linear(want, model.layers[1]->weight, model.layers[1]->bias));
    want = linear(want, model.layers[2]->weight, model.layers[2]->bias);
    expect_near(model.forward(x), want, 0, 0);
    EXPECT_EQ(want.shape(), "[7, 3]");
  }
}

TEST(Mlp, AnOperatorCanBeTheActivation) {
  const NoGradGuard no_grad;
  const Tensor x = random_tensor({7, 6});
  manual_seed(1);
  Mlp built_in(small_mlp(Activation::kGelu));
  manual_seed(1);
  MlpOptions options = small_mlp();
  options.activation_operator = "gelu";
  expect_near(Mlp(options).forward(x), built_in.forward(x), 0, 0);
  options.activation_operator = "t";
  EXPECT_THROW(Mlp(options).forward(x), ShapeError);
  options.activation_operator = "gelo";
  EXPECT_THROW(Mlp{options}, DispatchError);
}

TEST(Mlp, LayersStartUniformWithinTheRootOfTheirInputs) {
  manual_seed(1);
  const Mlp model({.inputs = 100, .hidden_widths = {400}, .classes = 10});
  const auto largest = [](const Tensor& t) { return max(abs(t)).item<double>(); };
  EXPECT_LE(largest(model.layers[0]->weight), 0.1);
  EXPECT_GT(largest(model.layers[0]->weight), 0.0999);
  EXPECT_LE(largest(model.layers[0]->bias), 0.1);
  EXPECT_GT(largest(model.layers[0]->bias), 0.09);
  EXPECT_LE(largest(model.layers[1]->weight), 0.05);
  EXPECT_NEAR(square(model.layers[0]->weight).mean().item<double>(), 0.01 / 3, 1e-4);
}

TEST(Mlp, WithoutHiddenLayersIsALinearClassifier) {
  const Mlp model({.inputs = 6, .hidden_widths = {}, .classes = 3});
  EXPECT_EQ(model.parameter_count(), 6 * 3 + 3);
  EXPECT_EQ(model.named_parameters()[0].name, "layers.0.weight");
  EXPECT_EQ(model.forward_flops(), 2 * 6 * 3);
}

TEST(Classifier, LossesAreSummedOverLabelledSamples) {
  const NoGradGuard no_grad;
  manual_seed(1);
  Mlp model(small_mlp());
  const Tensor x = random_tensor({4, 6});
  const Tensor labels = tensor_from<int64_t>({0, 2, -100, 1}, {4});
  const Tensor each = -log_softmax(model.forward(x), 1);
  const std::vector<double> losses = values(each);
  EXPECT_NEAR(sum_of_losses(model, x, labels).item<double>(), losses[0] + losses[5] + losses[10],
              1e-5);
}

TEST(Classifier, SamplesOfAnotherSizeAreRefused) {
  Mlp model(small_mlp());
  expect_error<ShapeError>(
      [&] {
        logits_of(model, zeros({4, 7}));
      },
      "[classifier]", "6 numbers", "[4, 7]");
  expect_error<ShapeError>([&] { model.forward(zeros({4, 7})); }, "[mlp]", "[4, 7]");
}

TEST(Mlp, LearnsToTellTwoClassesApart) {
  manual_seed(2);
  Mlp model({.inputs = 2, .hidden_widths = {16}, .classes = 2, .activation = Activation::kGelu});
  // Class 1: both coordinates have the same sign, which no line separates (XOR).
  const Tensor x = random_tensor({64, 2});
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 64; ++i) {
    labels.push_back(x.data<float>()[2 * i] * x.data<float>()[2 * i + 1] > 0 ? 1 : 0);
  }
  const Tensor target = tensor_from<int64_t>(labels, {64});
  double first = 0, loss = 0;
  for (int step = 0; step < 200; ++step) {
    const Tensor total = sum_of_losses(model, x, target);
    loss = total.item<double>() / 64;
    if (step == 0) first = loss;
    total.backward();
    const NoGradGuard no_grad;
    for (const Tensor& parameter : model.parameters()) {
      sub_(parameter, parameter.grad() / 64.0, 0.5);
      parameter.set_grad({});
    }
  }
  EXPECT_GT(first, 0.5);
  EXPECT_LT(loss, 0.2);
}

}  // namespace
}  // namespace lockstep::nn
