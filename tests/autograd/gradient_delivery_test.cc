#include "autograd/gradient_delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/accumulate_grad.h"
#include "autograd/autograd.h"
#include "autograd/function.h"
#include "autograd/hooks.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

/// The sum of three tensors, whose backward sends what it can before it returns, and notes it.
struct EarlySum : Function<EarlySum> {
  static Tensor forward(FunctionContext&, const Tensor& a, const Tensor& b, const Tensor& c) {
    return a + b + c;
  }
  static Gradients backward(FunctionContext&, const Tensor& grad) {
    Gradients gradients;
    for (size_t i = 0; i < 3; ++i) {
      Tensor gradient = grad * static_cast<double>(i + 1);
      sent.push_back(send_gradient_early(i, gradient));
      order.push_back("computed");
      gradients.push_back(std::move(gradient));
    }
    return gradients;
  }
  static inline std::vector<bool> sent;
  static inline std::vector<std::string> order;
};

class EarlyGradient : public ::testing::Test {
 protected:
  EarlyGradient() { EarlySum::sent.clear(), EarlySum::order.clear(); }
};

TEST_F(EarlyGradient, LeavesGetTheirsBeforeTheNodeReturns) {
  const Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
  const Tensor c = ones({2}).set_requires_grad();
  const HookHandle hook = register_post_accumulate_grad_hook(
      a, [](const Tensor&) { EarlySum::order.push_back("accumulated"); });
  EarlySum::apply(a, b, c).sum().backward();
  EXPECT_THAT(EarlySum::sent, ElementsAre(true, true, true));
  EXPECT_THAT(EarlySum::order, ElementsAre("accumulated", "computed", "computed", "computed"));
  EXPECT_TRUE(equal(a.grad(), ones({2})));
  EXPECT_TRUE(equal(b.grad(), ones({2}).mul(2)));
  EXPECT_TRUE(equal(c.grad(), ones({2}).mul(3)));
}

TEST_F(EarlyGradient, ALeafThatWaitsForOthersOrNoLeafGetsItAfterwards) {
  const Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
  const Tensor earlier = a * 5;  // whose backward comes later
  const Tensor computed = (b * 2) * 3;
  (EarlySum::apply(a, computed, b) + earlier).sum().backward();
  EXPECT_THAT(EarlySum::sent, ElementsAre(false, false, false));
  EXPECT_TRUE(equal(a.grad(), ones({2}).mul(6)));
  EXPECT_TRUE(equal(b.grad(), ones({2}).mul(15)));
}

TEST_F(EarlyGradient, ACastStandsForItsLeaf) {
  const Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
  EarlySum::apply(a.to(DType::kF64), b.to(DType::kF64), zeros({2}, DType::kF64)).sum().backward();
  EXPECT_THAT(EarlySum::sent, ElementsAre(true, true, true));
  EXPECT_TRUE(equal(b.grad(), ones({2}).mul(2)));
}

TEST_F(EarlyGradient, OneThatNobodyWantsIsTaken) {
  const Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
  const Tensor constant = ones({2});
  EXPECT_TRUE(equal(grad({EarlySum::apply(a, b, constant).sum()}, {b})[0], ones({2}).mul(2)));
  EXPECT_FALSE(a.grad().defined());
  EXPECT_THAT(EarlySum::sent, ElementsAre(true, true, true));
}

TEST_F(EarlyGradient, ARecordedBackwardReturnsAll) {
  const Tensor a = ones({2}).set_requires_grad();
  const Tensor first =
      grad({EarlySum::apply(a, a, a).mul(a).sum()}, {a}, {}, {.create_graph = true})[0];
  EXPECT_THAT(EarlySum::sent, ElementsAre(false, false, false));
  EXPECT_TRUE(equal(grad({first.sum()}, {a})[0], ones({2}).mul(12)));
}

/// The sum of two tensors, whose backward tries to send a third gradient.
struct OneTooMany : Function<OneTooMany> {
  static Tensor forward(FunctionContext&, const Tensor& a, const Tensor& b) { return a + b; }
  static Gradients backward(FunctionContext&, const Tensor& grad) {
    Tensor third = grad * 3;
    is_refused = !send_gradient_early(2, third) && third.defined();
    return {grad, grad};
  }
  static inline bool is_refused = false;
};

TEST_F(EarlyGradient, OneOfAnEdgeThatTheNodeDoesNotHaveIsRefused) {
  const Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
  // The edge behind those of the sum is the product's, to a leaf that waits for it alone.
  OneTooMany::apply(a, b * 5).sum().backward();
  EXPECT_TRUE(OneTooMany::is_refused);
  EXPECT_TRUE(equal(a.grad(), ones({2})));
  EXPECT_TRUE(equal(b.grad(), ones({2}).mul(5)));
}

TEST(GradInto, WritesTheFirstContributionOfALeafToItsPlace) {
  const Tensor x = randn({4, 3});
  const Tensor w = randn({5, 3}).set_requires_grad(), other = randn({5}).set_requires_grad();
  const Tensor loss = (linear(x, w) * other).sum();
  const Tensor place = empty({5, 3});
  const std::vector<Tensor> want = grad({loss}, {w, other}, {}, {.retain_graph = true});
  const std::vector<Tensor> got = grad_into({loss}, {w, other}, {place, Tensor()});
  EXPECT_EQ(got[0].data(), place.data());
  EXPECT_TRUE(equal(got[0], want[0]));
  EXPECT_TRUE(equal(got[1], want[1]));
  EXPECT_FALSE(w.grad().defined());
}

}  // namespace
}  // namespace lockstep
