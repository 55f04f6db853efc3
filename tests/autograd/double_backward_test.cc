#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/hooks.h"
#include "core/base/error.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
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
  EXPECT_THROWS(gradcheck(f, {leaf({1}) * 2}), AutogradError, "[gradcheck] input 0 must be a leaf");
  const Tensor single = sample::vector({1}).to(DType::kF32).set_requires_grad();
  const auto second = [](TensorList in) { return in[1] * 2; };
  EXPECT_THROWS(gradcheck(second, {Tensor(), single}), DTypeError,
                "[gradcheck] input 1 must be float64 on cpu, got float32[1]");
  const auto narrow = [](TensorList in) { return in[0].to(DType::kF32); };
  EXPECT_THROWS(gradcheck(narrow, {leaf({1})}), DTypeError,
                "[gradcheck] an output has the wrong dtype: expected float64, got float32[1]");
}

TEST(Gradcheck, ElementsOfAnyStridesAreNamedRowByRow) {
  const Tensor x = sample::matrix(2, 3, false).t().detach().set_requires_grad();
  const std::vector<double> before = elements(x);
  const auto square = [](TensorList in) { return in[0] * in[0]; };
  EXPECT_TRUE(gradcheck(square, {x}));
  EXPECT_EQ(elements(x), before);
  // Of two outputs, the second is wrong at one element.
  const Tensor mask = sample::vector({0, 0, 0, 1, 0, 0}).view({3, 2});
  const auto partly = [&](TensorList in) {
    return std::vector<Tensor>{in[0] * 2, Tensor(), in[0].argmax(),
                               in[0] * 3 + in[0].detach() * mask};
  };
  EXPECT_THROWS(gradcheck(partly, {x}), AutogradError,
                "the derivative of output 1 element 3 with respect to input 0 element 3 differs: "
                "numerical 4, from backward 3.");
}

TEST(Gradcheck, ADerivativeMayDifferByTheTolerance) {
  const auto off_by = [](double error) {
    return [error](TensorList in) {
      const Tensor y = in[0] * 100;
      if (y.requires_grad()) {
        y.register_hook([error](const Tensor& grad) { return grad * (1 + error); });
      }
      return y;
    };
  };
  EXPECT_TRUE(gradcheck(off_by(0.0009), {leaf({3})}));
  EXPECT_THROW(gradcheck(off_by(0.0011), {leaf({3})}), AutogradError);
  EXPECT_THROW(gradcheck(off_by(-0.0011), {leaf({3})}), AutogradError);
  GradcheckOptions exact;
  exact.relative = 0;
  exact.absolute = 0.5;
  EXPECT_TRUE(gradcheck(off_by(0.004), {leaf({3})}, exact));
  EXPECT_THROW(gradcheck(off_by(0.006), {leaf({3})}, exact), AutogradError);
  // The step of the central difference: the third derivative shows with a large one.
  const auto cube = [](TensorList in) { return in[0] * in[0] * in[0]; };
  GradcheckOptions large;
  large.step = 1;
  EXPECT_THROWS(gradcheck(cube, {leaf({2})}, large), AutogradError,
                "numerical 13, from backward 12");
}

TEST(Gradcheck, OutputsThatAreConstantAreCheckedAgainstZero) {
  const auto f = [](TensorList in) {
    return std::vector<Tensor>{sample::vector({5, 6}), in[0] * 2};
  };
  EXPECT_TRUE(gradcheck(f, {leaf({1})}));
  EXPECT_TRUE(gradgradcheck(f, {leaf({1})}));
  const auto hidden = [](TensorList in) {
    return std::vector<Tensor>{in[0].detach() * 7, in[0] * 2};
  };
  EXPECT_THROWS(gradcheck(hidden, {leaf({1})}), AutogradError, "output 0 element 0",
                "numerical 7, from backward 0.");
}

TEST(Gradcheck, AWrongSecondDerivativeIsFound) {
  // The gradient of x * y for x is right; its derivative for y is lost.
  const auto f = [](TensorList in) {
    const Tensor y = in[0] * in[0];
    if (y.requires_grad()) {
      y.register_hook([](const Tensor& grad) { return grad.detach() + (grad - grad) * 0; });
    }
    return y;
  };
  EXPECT_TRUE(gradcheck(f, {leaf({1, 2})}));
  EXPECT_THROWS(gradgradcheck(f, {leaf({1, 2})}), AutogradError,
                "[gradcheck] the derivative of "
                "output 0 element 0 with respect to input 1 element 0 differs");
}

}  // namespace
}  // namespace lockstep
