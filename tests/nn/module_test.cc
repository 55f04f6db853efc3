#include "nn/module.h"

#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "nn/block_runner.h"
#include "tests/core/expect_error.h"
#include "tests/nn/names.h"

namespace lockstep::nn {
namespace {

struct Leaf : Module {
  explicit Leaf(Tensor shared) : weight(register_parameter("weight", std::move(shared))) {}
  Tensor weight;
};

struct Counter : Module {
  explicit Counter(Tensor count)
      : weight(register_parameter("weight", zeros({2}))),
        count(register_buffer("count", std::move(count))) {}
  Tensor weight;
  Tensor count;
};

struct Counters : Module {
  explicit Counters(const Tensor& first, const Tensor& second)
      : own(register_buffer("own", ones({1}))), a(first), b(second) {
    register_module("a", a);
    register_module("b", b);
  }
  Tensor own;
  Counter a;
  Counter b;
};

struct Pair : Module {
  explicit Pair(const Tensor& first, const Tensor& second) : a(first), b(second) {
    register_module("a", a);
    register_module("b", b);
  }
  Leaf a;
  Leaf b;
};

TEST(Module, NamesAreDottedPathsInOrderOfRegistration) {
  Pair pair(zeros({2}), zeros({3}));
  const auto parameters = pair.named_parameters();
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "a.weight");
  EXPECT_EQ(parameters[1].name, "b.weight");
  EXPECT_EQ(pair.parameter_count(), 5);
}

TEST(Module, StateOfAPassIsThatOfAllModulesBelow) {
  Pair pair(zeros({2}), zeros({3}));
  const PassState training = pair.pass_state();
  ASSERT_EQ(training.tensors.size(), 2u);
  EXPECT_TRUE(training.tensors[0].is_same(pair.a.weight));
  EXPECT_TRUE(training.tensors[1].is_same(pair.b.weight));
  EXPECT_FALSE(training.has_buffers);
  // Each module's mode counts.
  pair.a.eval();
  const uint64_t first_in_eval = pair.pass_state().modes;
  pair.a.train();
  EXPECT_EQ(pair.pass_state().modes, training.modes);
  pair.b.eval();
  const uint64_t second_in_eval = pair.pass_state().modes;
  EXPECT_NE(first_in_eval, training.modes);
  EXPECT_NE(second_in_eval, training.modes);
  EXPECT_NE(first_in_eval, second_in_eval);
  // Buffers of modules below do, and hooks of those, but not of the module itself.
  const Counters counters(zeros({2}), zeros({2}));
  EXPECT_TRUE(counters.pass_state().has_buffers);
  EXPECT_EQ(counters.pass_state().tensors.size(), 5u);
  const auto own = counters.register_forward_hook([](const Module&, auto&&...) {});
  EXPECT_FALSE(counters.pass_state().has_hooks);
  const auto below = counters.b.register_forward_hook([](const Module&, auto&&...) {});
  EXPECT_TRUE(counters.pass_state().has_hooks);
}

TEST(Module, EachIsVisitedOnceBeforeThoseBelowIt) {
  Pair pair(zeros({2}), zeros({3}));
  std::vector<Module*> visited;
  pair.for_each([&](Module& module) { visited.push_back(&module); });
  EXPECT_EQ(visited, (std::vector<Module*>{&pair, &pair.a, &pair.b}));
}

TEST(Module, KnowsItsPathHoweverDeepItIsPut) {
  struct Model : Module {
    Model() : pair(zeros({2}), zeros({3})), leaf(zeros({1})) {
      register_module("h.0", pair);
      register_module("last", leaf);
    }
    Pair pair;
    Leaf leaf;
  };
  const Model model;
  EXPECT_EQ(model.path(), "");
  EXPECT_EQ(model.pair.path(), "h.0");
  EXPECT_EQ(model.pair.b.path(), "h.0.b");
  EXPECT_EQ(model.leaf.path(), "last");
}

TEST(Module, ATiedParameterIsListedOnceUnderItsFirstName) {
  const Tensor shared = zeros({4});
  Pair pair(shared, shared);
  ASSERT_EQ(pair.named_parameters().size(), 1u);
  EXPECT_EQ(pair.named_parameters()[0].name, "a.weight");
  EXPECT_EQ(pair.parameter_count(), 4);
}

TEST(Module, ParametersRequireGrad) {
  Pair pair(zeros({2}), zeros({3}));
  EXPECT_TRUE(pair.a.weight.requires_grad());
}

TEST(Module, ZeroGradFreesGradientsOrWritesZeros) {
  Pair pair(ones({2}), ones({3}));
  pair.a.weight.sum().backward();
  const Tensor gradient = pair.a.weight.grad();
  pair.zero_grad(false);
  EXPECT_TRUE(pair.a.weight.grad().is_same(gradient));
  EXPECT_EQ(gradient.sum().item<float>(), 0);
  EXPECT_FALSE(pair.b.weight.grad().defined());
  pair.zero_grad();
  EXPECT_FALSE(pair.a.weight.grad().defined());
  pair.a.weight.mul(pair.a.weight).sum().backward({}, false, true);
  pair.zero_grad(false);
  EXPECT_FALSE(pair.a.weight.grad().requires_grad());
}

TEST(Module, BuffersAreNamedLikeParametersAndAreNone) {
  Counters counters(zeros({}), zeros({3}));
  EXPECT_EQ(names(counters.named_buffers()),
            (std::vector<std::string>{"own", "a.count", "b.count"}));
  EXPECT_EQ(names(counters.named_parameters()), (std::vector<std::string>{"a.weight", "b.weight"}));
  EXPECT_EQ(counters.parameter_count(), 4);
  EXPECT_TRUE(counters.named_buffers()[1].tensor.is_same(counters.a.count));
  EXPECT_FALSE(counters.a.count.requires_grad());
}

TEST(Module, ASharedBufferIsListedOnceUnderItsFirstName) {
  const Tensor shared = zeros({});
  Counters counters(shared, shared);
  EXPECT_EQ(names(counters.named_buffers()), (std::vector<std::string>{"own", "a.count"}));
}

TEST(Module, BuffersAreStoredAfterParameters) {
  Counters counters(zeros({}), zeros({}));
  std::vector<std::string> stored;
  for (const StoredParameter& tensor : counters.stored_parameters()) stored.push_back(tensor.name);
  EXPECT_EQ(stored,
            (std::vector<std::string>{"a.weight", "b.weight", "own", "a.count", "b.count"}));
}

TEST(Module, ABufferThatRequiresGradIsRefused) {
  expect_error<AutogradError>([] { Counter(zeros({2}).set_requires_grad()); }, "[module]", "count");
}

TEST(Module, TrainingModeReachesChildren) {
  Pair pair(zeros({2}), zeros({3}));
  pair.eval();
  EXPECT_FALSE(pair.b.is_training());
  pair.train();
  EXPECT_TRUE(pair.b.is_training());
}

}  // namespace
}  // namespace lockstep::nn
