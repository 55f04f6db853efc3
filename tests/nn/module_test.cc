#include "nn/module.h"

#include <gtest/gtest.h>

#include "core/ops/factory.h"

namespace lockstep::nn {
namespace {

struct Leaf : Module {
  explicit Leaf(Tensor shared) : weight(register_parameter("weight", std::move(shared))) {}
  Tensor weight;
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

TEST(Module, TrainingModeReachesChildren) {
  Pair pair(zeros({2}), zeros({3}));
  pair.eval();
  EXPECT_FALSE(pair.b.is_training());
  pair.train();
  EXPECT_TRUE(pair.b.is_training());
}

}  // namespace
}  // namespace lockstep::nn
