#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/hooks.h"
#include "core/base/error.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

GradOptions create_graph() {
  GradOptions options;
  options.create_graph = true;
  return options;
}

TEST(DoubleBackward, AGradientCanBeDifferentiated) {
  const Tensor x = leaf({2, 3});
  const Tensor first = grad({(x * x * x).sum()}, {x}, {}, create_graph())[0];
  EXPECT_THAT(elements(first), ElementsAre(12, 27));
  const Tensor second = grad({first.sum()}, {x}, {}, create_graph())[0];
  EXPECT_THAT(elements(second), ElementsAre(12, 18));
  EXPECT_THAT(elements(grad({second.sum()}, {x})[0]), ElementsAre(6, 6));
}

TEST(DoubleBackward, WithoutCreateGraphGradientsHaveNoHistory) {
  const Tensor x = leaf({2});
  EXPECT_FALSE(grad({x * x}, {x})[0].requires_grad());
}

TEST(DoubleBackward, AHessianTimesAVector) {
  const Tensor x = leaf({1, 2});
  const Tensor f = (x.slice(0, 0, 1) * x.slice(0, 0, 1) * x.slice(0, 1, 2)).sum();  // a^2 b
  const Tensor gradient = grad({f}, {x}, {}, create_graph())[0];
  const Tensor v = sample::vector({10, 1});
  EXPECT_THAT(elements(grad({(gradient * v).sum()}, {x})[0]), ElementsAre(42, 20));
}

TEST(DoubleBackward, ASavedResultKeepsItsHistory) {
  EXPECT_TRUE(gradgradcheck([](TensorList in) { return in[0].exp(); }, {leaf({0.5, -1})}));
  EXPECT_TRUE(gradgradcheck([](TensorList in) { return in[0].tanh(); }, {leaf({0.5, -1})}));
}

TEST(DoubleBackward, ASavedResultDoesNotKeepItsNodeAlive) {
  const int64_t before = allocator(kCPU).stats().allocated;
  {
    const Tensor x = leaf({1, 2});
    const Tensor y = x.exp().tanh();
    EXPECT_GT(allocator(kCPU).stats().allocated, before);
  }
  EXPECT_EQ(allocator(kCPU).stats().allocated, before);
}

TEST(DoubleBackward, WhatCreateGraphKeepsIsFreedWithTheLeafsGradient) {
  const int64_t before = allocator(kCPU).stats().allocated;
  {
    const Tensor x = leaf({1, 2});
    (x * x * x).sum().backward({}, false, true);
    EXPECT_TRUE(x.grad().requires_grad());
    x.set_grad({});  // breaks a reference cycle: x -> gradient -> its graph -> x
  }
  EXPECT_EQ(allocator(kCPU).stats().allocated, before);
}

TEST(Gradcheck, AcceptsRightDerivatives) {
  const auto f = [](TensorList in) { return mm(in[0], in[1]) * in[2]; };
  EXPECT_TRUE(gradcheck(f, {sample::matrix(2, 3), sample::matrix(3, 2), leaf({1, 2})}));
  EXPECT_TRUE(gradgradcheck(f, {sample::matrix(2, 3), sample::matrix(3, 2), leaf({1, 2})}));
}

TEST(Gradcheck, ChecksEveryOutputAndLeavesInputsAsTheyWere) {
  const Tensor x = leaf({1, 2});
  const auto f = [](TensorList in) {
    const auto [twice, square] = sample::pair(in[0]);
    return std::vector<Tensor>{twice, square};
  };
  EXPECT_TRUE(gradcheck(f, {x}));
  EXPECT_TRUE(gradgradcheck(f, {x}));
  EXPECT_THAT(elements(x), ElementsAre(1, 2));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Gradcheck, NamesInputElementAndBothValuesOfAWrongDerivative) {
  const auto f = [](TensorList in) { return sample::wrong(in[1]); };
  EXPECT_THROWS(gradcheck(f, {sample::vector({1}), leaf({1, 2})}), AutogradError,
                "output 0 element 0", "input 1 element 0", "numerical 2", "backward 3");
}

TEST(Gradcheck, RoundingOfLargeOutputsIsNoWrongDerivative) {
  const Tensor x = leaf({0.3, 0.7});
  EXPECT_TRUE(gradcheck([](TensorList in) { return in[0] * 3 + 1e10; }, {x}));
  EXPECT_THROW(gradcheck([](TensorList in) { return in[0].detach() * 3 + 1e4; }, {x}), Error);
}

TEST(Gradcheck, AMissingGradientIsWrongToo) {
  const auto f = [](TensorList in) { return in[0].detach() * in[0]; };
  EXPECT_THROWS(gradcheck(f, {leaf({3})}), AutogradError, "numerical 6", "backward 3");
}

TEST(Gradcheck, ABackwardThatGivesOtherGradientsTheSecondTimeIsFound) {
  int runs = 0;
  const auto f = [&](TensorList in) {
    const Tensor y = in[0] * 2;
    if (!y.requires_grad()) return y;
    y.register_hook([&](const Tensor& grad) { return grad + 1e-9 * ++runs; });
    return y;
  };
  EXPECT_THROWS(gradcheck(f, {leaf({3})}), AutogradError, "not deterministic", "input 0 element 0");
  GradcheckOptions tolerant;
  tolerant.nondeterminism = 1e-6;
  EXPECT_TRUE(gradcheck(f, {leaf({3})}, tolerant));
}

TEST(Gradcheck, RefusesWhatItCannotCheck) {
  const auto f = [](TensorList in) { return in[0] * 2; };
  EXPECT_THROWS(gradcheck(f, {sample::vector({1})}), AutogradError, "nothing to check");
}

}  // namespace
}  // namespace lockstep
