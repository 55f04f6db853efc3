#include "nn/adapters/lora.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "nn/containers.h"
#include "nn/functional_call.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "tests/core/expect_error.h"

namespace lockstep::nn {
namespace {

double distance_between(const Tensor& a, const Tensor& b) {
  return max(abs(a.detach() - b.detach())).item<double>();
}

bool is_any_layer(std::string_view) { return true; }

/// Values other than the zeros with which adapters begin.
void fill_adapters(const Module& model) {
  const NoGradGuard no_grad;
  for (const Linear* each : adapted_layers(model)) normal_(each->lora()->b.weight, 0.0, 0.3);
}

TEST(Lora, ANewAdapterChangesNothing) {
  manual_seed(1);
  Linear layer(6, 4);
  const Tensor x = randn({3, 6});
  const Tensor before = layer.forward(x);
  layer.add_lora({.rank = 2});
  EXPECT_EQ(distance_between(layer.forward(x), before), 0);
}

TEST(Lora, ALayerComputesThePublishedFormulaAndItsGradients) {
  manual_seed(1);
  Linear layer(6, 4);
  layer.freeze();
  layer.add_lora({.rank = 2, .alpha = 3});
  fill_adapters(layer);
  const LoraAdapter& lora = *layer.lora();
  const Tensor x = randn({5, 6}), weights = randn({5, 4});
  (layer.forward(x) * weights).sum().backward();

  // h = W x + b + alpha / r B A x, in f64.
  const auto wide = [](const Tensor& tensor) { return tensor.detach().to(DType::kF64); };
  const Tensor a = wide(lora.a.weight).set_requires_grad();
  const Tensor b = wide(lora.b.weight).set_requires_grad();
  const Tensor base = mm(wide(x), wide(layer.weight).t()) + wide(layer.bias);
  const Tensor h = base + mm(mm(wide(x), a.t()), b.t()) * 1.5;
  (h * wide(weights)).sum().backward();
  EXPECT_LT(distance_between(layer.forward(x).to(DType::kF64), h), 1e-5);
  EXPECT_LT(distance_between(lora.a.weight.grad().to(DType::kF64), a.grad()), 1e-5);
  EXPECT_LT(distance_between(lora.b.weight.grad().to(DType::kF64), b.grad()), 1e-5);
  EXPECT_FALSE(layer.weight.grad().defined());
  EXPECT_FALSE(layer.bias.grad().defined());
}

/// Compares losses and gradients of the adapters with those of a model that computes with W +
/// alpha / r B A in the place of each W: the adapters act in every form of a layer's forward pass.
template <class Model, class Options>
void expect_as_changed_weights(const Options& options) {
  manual_seed(3);
  Model model(options), plain(options);
  plain.load_state_dict(model.state_dict());
  model.freeze();
  const LoraOptions lora{.rank = 3, .alpha = 6};
  ASSERT_GT(add_lora(
                model, [&](std::string_view path) { return path != "lm_head"; }, lora),
            0);
  fill_adapters(model);
  const Tensor tokens = randint(0, 11, {2, 8}, DType::kI64);
  const Tensor targets = randint(0, 11, {2, 8}, DType::kI64);
  const Tensor loss = sum_of_losses(model, tokens, targets);
  loss.backward();

  std::vector<Tensor> weights, leaves, gradients;
  const StateDict adapters = model.state_dict();
  for (const NamedParameter& each : plain.named_parameters()) {
    const std::string path = each.name.substr(0, each.name.rfind('.'));
    const Tensor* const a = adapters.find(path + ".lora_A.weight");
    weights.push_back(each.tensor.detach());
    if (a == nullptr || !each.name.ends_with(".weight")) continue;
    leaves.push_back(a->detach().clone().set_requires_grad());
    leaves.push_back(adapters.at(path + ".lora_B.weight").detach().clone().set_requires_grad());
    weights.back() = merged_weight(weights.back(), leaves[leaves.size() - 2], leaves.back(), 2);
  }
  for (const Tensor& each : model.parameters()) {
    if (each.requires_grad()) gradients.push_back(each.grad());
    EXPECT_EQ(each.requires_grad(), each.grad().defined());
  }
  const Tensor reference =
      functional_call(plain, weights, [&] { return sum_of_losses(plain, tokens, targets); });
  reference.backward();
  EXPECT_NEAR(loss.item<float>(), reference.item<float>(), 1e-4 * reference.item<float>());
  ASSERT_EQ(gradients.size(), leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const double scale = max(abs(leaves[i].grad())).template item<double>();
    EXPECT_LT(distance_between(gradients[i], leaves[i].grad()), 1e-4 * (scale + 1e-3)) << i;
  }

  merge_lora(model);
  EXPECT_TRUE(adapted_layers(model).empty());
  EXPECT_EQ(model.named_parameters().size(), plain.named_parameters().size());
  const NoGradGuard no_grad;
  EXPECT_NEAR(sum_of_losses(model, tokens, targets).template item<float>(), reference.item<float>(),
              1e-4 * reference.item<float>());
}

TEST(Lora, AdaptersOfGpt2ChangeItsWeights) {
  expect_as_changed_weights<Gpt2>(
      Gpt2Options{.vocabulary = 11, .context_length = 8, .layers = 2, .heads = 2, .width = 8});
}

TEST(Lora, AdaptersOfLlamaChangeItsWeights) {
  expect_as_changed_weights<Llama>(LlamaOptions{.vocabulary = 11,
                                                .context_length = 8,
                                                .layers = 2,
                                                .heads = 2,
                                                .kv_heads = 1,
                                                .width = 8,
                                                .hidden_width = 12});
}

TEST(Lora, OnlyTheLayersThatAreNamedGetAdapters) {
  manual_seed(1);
  Llama model(LlamaOptions{.vocabulary = 11, .layers = 2, .heads = 2, .kv_heads = 2, .width = 8});
  EXPECT_EQ(add_lora(model, [](std::string_view path) { return path.ends_with("k_proj"); }), 2);
  const std::vector<const Linear*> layers = adapted_layers(model);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[1]->path(), "model.layers.1.self_attn.k_proj");
  EXPECT_EQ(layers[1]->lora()->a.path(), "model.layers.1.self_attn.k_proj.lora_A");
}

TEST(Lora, DropoutActsOnTheInputOfTheAdapterInTrainingAlone) {
  manual_seed(1);
  Linear layer(64, 4, LinearOptions{.bias = false});
  layer.add_lora({.rank = 4, .dropout = 0.5});
  fill_adapters(layer);
  const Tensor x = randn({3, 64});
  const NoGradGuard no_grad;
  const Tensor one = layer.forward(x), other = layer.forward(x);
  EXPECT_GT(distance_between(one, other), 0);
  layer.eval();
  const Tensor merged = mm(x, merged_weight(layer.weight, layer.lora()->a.weight,
                                            layer.lora()->b.weight, layer.lora()->scale)
                                  .t());
  EXPECT_LT(distance_between(layer.forward(x), merged), 1e-4);
}

TEST(Lora, ComputesInBfloat16UnderAutocast) {
  manual_seed(1);
  Linear layer(32, 16);
  layer.add_lora({.rank = 4});
  fill_adapters(layer);
  const Tensor x = randn({3, 32});
  const Tensor exact = layer.forward(x);
  const AutocastGuard region(DeviceType::kCPU);
  const Tensor rounded = layer.forward(x);
  EXPECT_EQ(rounded.dtype(), DType::kBF16);
  EXPECT_LT(distance_between(rounded.to(DType::kF32), exact), 0.05);
}

TEST(Lora, ALayerWithAnAdapterMovesWithIt) {
  manual_seed(1);
  Linear layer(6, 4);
  layer.add_lora({});
  Sequential model(std::move(layer));
  EXPECT_EQ(model.named_parameters().size(), 4u);
  EXPECT_EQ(model.named_parameters().back().name, "0.lora_B.weight");
}

TEST(Lora, ASecondAdapterAndBadOptionsAreRefused) {
  Linear layer(6, 4);
  expect_error<Error>([&] { layer.add_lora({.rank = 0}); }, "expected a rank above 0");
  expect_error<Error>([&] { layer.add_lora({.dropout = 1}); }, "dropout in [0, 1)");
  EXPECT_EQ(add_lora(layer, is_any_layer), 1);
  expect_error<Error>([&] { layer.add_lora({}); }, "has an adapter already");
}

}  // namespace
}  // namespace lockstep::nn
