#include "nn/forward_hooks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "nn/layers.h"
#include "nn/models/gpt2.h"
#include "tests/core/expect_error.h"

namespace lockstep::nn {
namespace {

TEST(ForwardHooks, RunBeforeAndAfterForwardInTheOrderTheyWereAdded) {
  const Linear layer(2, 2, true);
  std::vector<std::string> calls;
  layer.register_forward_pre_hook(
      [&](const Module&, std::span<Tensor>) { calls.push_back("before"); });
  layer.register_forward_hook(
      [&](const Module& module, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
        EXPECT_EQ(&module, &layer);
        EXPECT_EQ(inputs.size(), 1u);
        EXPECT_EQ(outputs.size(), 1u);
        calls.push_back("after");
      });
  layer.register_forward_pre_hook(
      [&](const Module&, std::span<Tensor>) { calls.push_back("before, too"); });
  layer.forward(ones({1, 2}));
  EXPECT_EQ(calls, (std::vector<std::string>{"before", "before, too", "after"}));
}

TEST(ForwardHooks, MayReplaceInputsAndOutputs) {
  const Linear layer(2, 2, false);
  const Tensor x = ones({1, 2});
  const Tensor expected = layer.forward(x * 3.0) * 2.0;
  layer.register_forward_pre_hook(
      [](const Module&, std::span<Tensor> inputs) { inputs[0] = inputs[0] * 3.0; });
  layer.register_forward_hook([](const Module&, std::span<const Tensor>,
                                 std::span<Tensor> outputs) { outputs[0] = outputs[0] * 2.0; });
  const Tensor result = layer.forward(x);
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(result.data<float>()[i], expected.data<float>()[i]);
}

TEST(ForwardHooks, SeeBothTensorsOfAFormWithTwoResults) {
  const LayerNorm norm(4, 1e-5);
  norm.register_forward_hook(
      [](const Module&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
        EXPECT_EQ(inputs.size(), 2u);
        ASSERT_EQ(outputs.size(), 2u);
        outputs[1] = zeros({1, 4});
      });
  const NormedSum result = norm.forward_onto(ones({1, 4}), ones({1, 4}));
  EXPECT_EQ(result.sum.sum().item<float>(), 0);
}

TEST(ForwardHooks, AreGoneOnceRemovedAlsoByThemselves) {
  const Linear layer(2, 2, false);
  int calls = 0;
  ForwardHookHandle handle;
  handle = layer.register_forward_pre_hook([&](const Module&, std::span<Tensor>) {
    ++calls;
    handle.remove();
  });
  layer.forward(ones({1, 2}));
  layer.forward(ones({1, 2}));
  EXPECT_EQ(calls, 1);
}

TEST(ForwardHooks, BehindForwardAreGoneOnceRemoved) {
  const Linear layer(2, 2, false);
  int removed = 0, kept = 0;
  const auto count = [&](int& calls) {
    return layer.register_forward_hook(
        [&calls](const Module&, std::span<const Tensor>, std::span<Tensor>) { ++calls; });
  };
  ForwardHookHandle first = count(removed);
  const ForwardHookHandle second = count(kept);
  layer.forward(ones({1, 2}));
  first.remove();
  layer.forward(ones({1, 2}));
  EXPECT_EQ(removed, 1);
  EXPECT_EQ(kept, 2);
}

TEST(ForwardHooks, AnUndefinedReplacementIsAnErrorThatNamesTheModule) {
  Gpt2 model({.vocabulary = 8, .context_length = 4, .layers = 1, .heads = 1, .width = 4});
  model.h[0]->c_fc.register_forward_hook(
      [](const Module&, std::span<const Tensor>, std::span<Tensor> outputs) { outputs[0] = {}; });
  expect_error<AutogradError>(
      [&] {
        model.forward(zeros({1, 2}, DType::kI64));
      },
      "h.0.mlp.c_fc", "undefined");
}

TEST(ForwardHooks, OfAModelRunAroundFeaturesAndOfBlocksInTheirOrder) {
  Gpt2 model({.vocabulary = 8, .context_length = 4, .layers = 2, .heads = 1, .width = 4});
  std::vector<std::string> calls;
  const auto note = [&](const Module& module, std::span<Tensor>) {
    calls.push_back(module.path());
  };
  model.register_forward_pre_hook(note);
  for (Module* block : model.sequence()) block->register_forward_pre_hook(note);
  model.forward(zeros({1, 2}, DType::kI64));
  EXPECT_EQ(calls, (std::vector<std::string>{"", "h.0", "h.1"}));
}

TEST(ForwardHooks, RunAgainWhenACheckpointRecomputesThePass) {
  const Linear layer(2, 2, false);
  std::vector<bool> recomputing;
  layer.register_forward_pre_hook(
      [&](const Module&, std::span<Tensor>) { recomputing.push_back(is_recomputing()); });
  const Tensor x = ones({1, 2}).set_requires_grad();
  const Tensor y = checkpoint([&](const Tensor& input) { return exp(layer.forward(input)); }, x);
  y.sum().backward();
  EXPECT_EQ(recomputing, (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace lockstep::nn
