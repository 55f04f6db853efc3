#include "nn/functional_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/transforms.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "nn/models/mlp.h"
#include "nn/models/resnet.h"

namespace lockstep::nn {
namespace {

using ::testing::IsEmpty;

void expect_close(const Tensor& got, const Tensor& want) {
  ASSERT_TRUE(same(got.sizes(), want.sizes())) << got.shape() << " and " << want.shape();
  const double apart = max(abs(sub(got, want))).item<double>();
  EXPECT_LE(apart, 2e-5 * (1 + max(abs(want)).item<double>()));
}

/// Compares per-sample gradients of all parameters from vmap with those from a loop. No operator
/// may use vmap's per-sample fallback.
template <class Model>
void expect_per_sample_gradients(Model& model, const Tensor& inputs, const Tensor& targets) {
  const std::vector<Tensor> parameters = model.parameters();
  const size_t count = parameters.size();
  std::vector<int64_t> wanted;
  for (size_t i = 0; i < count; ++i) wanted.push_back(static_cast<int64_t>(i));
  const TensorsFunction gradients = [&](TensorList given) {
    const TensorFunction loss = [&](TensorList now) {
      return functional_call(model, now.first(count), [&] {
        return sum_of_losses(model, now[count].unsqueeze(0), now[count + 1].unsqueeze(0));
      });
    };
    return value_and_gradients(loss, given, wanted).gradients;
  };

  std::vector<Tensor> given;
  for (const Tensor& parameter : parameters) given.push_back(parameter.detach());
  given.push_back(inputs);
  given.push_back(targets);
  VmapOptions options;
  options.in_dims.assign(count, std::nullopt);
  options.in_dims.insert(options.in_dims.end(), {0, 0});
  forget_operators_run_per_sample();
  const std::vector<Tensor> got = vmap(gradients, given, options);
  EXPECT_THAT(operators_run_per_sample(), IsEmpty());

  std::vector<std::vector<Tensor>> want(count);
  for (int64_t b = 0; b < inputs.size(0); ++b) {
    given[count] = inputs.select(0, b);
    given[count + 1] = targets.select(0, b);
    const std::vector<Tensor> one = gradients(given);
    for (size_t i = 0; i < count; ++i) want[i].push_back(one[i]);
  }
  const std::vector<NamedParameter> names = model.named_parameters();
  for (size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(names[i].name);
    expect_close(got[i], stack(want[i]));
  }
}

TEST(PerSampleGradients, OfAnMlpEqualALoop) {
  for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
    manual_seed(1);
    Mlp model({.inputs = 6, .hidden_widths = {5}, .classes = 4, .activation = activation});
    expect_per_sample_gradients(model, randn({3, 6}), randint(0, 4, {3}));
  }
}

TEST(PerSampleGradients, OfGpt2EqualALoop) {
  manual_seed(2);
  Gpt2 model({.vocabulary = 11, .context_length = 6, .layers = 2, .heads = 2, .width = 8});
  expect_per_sample_gradients(model, randint(0, 11, {3, 5}), randint(0, 11, {3, 5}));
}

TEST(PerSampleGradients, OfLlamaWithSharedKeysEqualALoop) {
  manual_seed(3);
  Llama model({.vocabulary = 11,
               .context_length = 6,
               .layers = 2,
               .heads = 4,
               .kv_heads = 2,
               .width = 16,
               .hidden_width = 12});
  expect_per_sample_gradients(model, randint(0, 11, {3, 5}), randint(0, 11, {3, 5}));
}

TEST(PerSampleGradients, OfAResnetWithFixedStatisticsEqualALoop) {
  for (const ResnetStem stem : {ResnetStem::kSmall, ResnetStem::kImageNet}) {
    manual_seed(4);
    Resnet model({.channels = 2,
                  .height = 12,
                  .width = 12,
                  .classes = 3,
                  .base_width = 4,
                  .blocks = {1, 1},
                  .stem = stem});
    model.eval();
    expect_per_sample_gradients(model, randn({3, 2, 12, 12}), randint(0, 3, {3}));
  }
}

TEST(PerSampleGradients, BatchStatisticsOfSamplesCannotBeKeptInOneBuffer) {
  manual_seed(5);
  Resnet model(
      {.channels = 1, .height = 8, .width = 8, .classes = 2, .base_width = 2, .blocks = {1}});
  EXPECT_THROW(expect_per_sample_gradients(model, randn({2, 1, 8, 8}), randint(0, 2, {2})),
               AutogradError);
}

TEST(FunctionalCall, UsesTheGivenParametersAndLeavesTheModuleAsItIs) {
  manual_seed(6);
  const Linear layer(3, 2, true);
  const Tensor x = randn({4, 3});
  const Tensor before = layer.forward(x);
  const Tensor zero =
      functional_call(layer, {zeros({2, 3}), ones({2})}, [&] { return layer.forward(x); });
  EXPECT_TRUE(equal(zero, ones({4, 2})));
  EXPECT_TRUE(equal(layer.forward(x), before));
}

TEST(FunctionalCall, RefusesAnotherNumberOrShapeOfParameters) {
  const Linear layer(3, 2, true);
  const auto forward = [&] { return layer.weight; };
  EXPECT_THROW(functional_call(layer, {zeros({2, 3})}, forward), ShapeError);
  EXPECT_THROW(functional_call(layer, {zeros({3, 2}), zeros({2})}, forward), ShapeError);
}

}  // namespace
}  // namespace lockstep::nn
