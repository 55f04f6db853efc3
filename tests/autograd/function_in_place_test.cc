// Functions that modify their arguments in place or return them or views of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/function.h"
#include "autograd/gradcheck.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "core/tensor/allocator.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

/// 2 x, written into x.
struct Double_ : Function<Double_> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.mark_dirty({x});
    x.mul_(full({}, 2, x.options()));
    return x;
  }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad * 2}; }
};

TEST(Function, ADirtyArgumentCarriesTheNewHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  const Tensor z = Double_::apply(y);
  EXPECT_TRUE(z.is_same(y));
  EXPECT_EQ(y.grad_fn()->name(), "Double_Backward");
  y.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(6, 6));
}

TEST(Function, AChangeOfADirtyArgumentIsCountedOnce) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  const uint32_t before = y.version();
  Double_::apply(y);
  EXPECT_EQ(y.version(), before + 1) << "by the operator that changed it";
}

TEST(Function, AnArgumentCannotBeDirtyAndWithoutAGradient) {
  struct Both : Function<Both> {
    static Tensor forward(FunctionContext& ctx, const Tensor& x) {
      ctx.mark_dirty({x});
      ctx.mark_non_differentiable({x});
      return x;
    }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
  };
  EXPECT_THROWS(Both::apply(leaf({1}) * 1), AutogradError,
                "[Both] an argument is marked both dirty and non-differentiable: float64[1]");
  const Tensor constant = sample::vector({1});
  EXPECT_TRUE(Both::apply(constant).is_same(constant)) << "where nothing is recorded";
}

TEST(Function, ADirtyArgumentBeginsToRequireGradThroughAnother) {
  struct AddInto : Function<AddInto> {
    static Tensor forward(FunctionContext& ctx, const Tensor& into, const Tensor& x) {
      ctx.mark_dirty({into});
      into.add_(x);
      return into;
    }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad, grad}; }
  };
  const Tensor into = sample::vector({1}), x = leaf({1});
  AddInto::apply(into, x);
  EXPECT_TRUE(into.requires_grad());
  into.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(1));
}

TEST(Function, ALeafThatRequiresGradCannotBeDirty) {
  EXPECT_THROWS(Double_::apply(leaf({1})), AutogradError, "[Double_]", "leaf");
  EXPECT_THROWS(Double_::apply(leaf({1, 2}).slice(0, 0, 1)), AutogradError, "view of a leaf");
  const Tensor computed = leaf({1, 2}) * 1;
  EXPECT_THROWS(Double_::apply(computed.split(1)[0]), AutogradError, "[Double_]", "split");
  const NoGradGuard guard;
  const Tensor x = leaf({1});
  Double_::apply(x);
  EXPECT_THAT(elements(x), ElementsAre(2));
}

TEST(Function, ADirtyViewChangesTheHistoryOfItsBase) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 1;
  const Tensor view = y.slice(0, 0, 2);
  Double_::apply(view);
  EXPECT_EQ(y.grad_fn()->name(), "CopySlices");
  (y.sum() + view.sum() * 10).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(22, 22, 1));
}

TEST(Function, ADirtyViewMayBeOlderThanItsBasesHistory) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor base = sample::vector({0, 0, 0});
  const Tensor view = base.slice(0, 0, 2);
  base.add_(x);
  Double_::apply(view);
  base.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 2, 1));
}

/// exp(x), written into x; its derivative reads the result.
struct Exp_ : Function<Exp_> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    x.copy_(x.exp());
    ctx.mark_dirty({x});
    ctx.save_for_backward({x});
    return x;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {grad * ctx.saved(0)};
  }
};

TEST(Function, ADirtyArgumentThatIsSavedHasItsNewHistory) {
  const auto whole = [](TensorList inputs) {
    const Tensor y = inputs[0] * 1;
    return Exp_::apply(y);
  };
  const auto part = [](TensorList inputs) {
    const Tensor y = inputs[0] * 1;
    Exp_::apply(y.slice(0, 0, 2));
    return y * y;
  };
  EXPECT_TRUE(gradgradcheck(whole, {leaf({0.5, -1, 2})}));
  EXPECT_TRUE(gradgradcheck(part, {leaf({0.5, -1, 2})}));
}

TEST(Function, AChangedViewThatIsSavedLeavesNothingBehind) {
  const int64_t before = allocator(kCPU).stats().allocated;
  {
    const Tensor y = leaf({1, 2, 3}) * 1;
    const Tensor view = y.slice(0, 0, 2);
    Exp_::apply(view);
    Exp_::apply(view);
  }
  EXPECT_EQ(allocator(kCPU).stats().allocated, before);
}

TEST(Function, ADirtyViewMustBeTheFirstArgument) {
  struct Second : Function<Second> {
    static Tensor forward(FunctionContext& ctx, const Tensor&, const Tensor& y) {
      ctx.mark_dirty({y});
      return y;
    }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {Tensor(), grad}; }
  };
  const Tensor y = leaf({1, 2}) * 1;
  EXPECT_THROWS(Second::apply(y, y.slice(0, 0, 1)), AutogradError, "[Second]", "view", "first");
}

TEST(Function, DirtyMarksMustFit) {
  struct Marks : Function<Marks> {
    static Tensor forward(FunctionContext& ctx, const Tensor& x, const Tensor& mark) {
      ctx.mark_dirty({mark});
      return x * 1;
    }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad, Tensor()}; }
  };
  struct Other : Function<Other> {
    static Tensor forward(FunctionContext& ctx, const Tensor& x) {
      const Tensor y = x * 1;
      ctx.mark_dirty({y});
      return y;
    }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
  };
  EXPECT_THROWS(Marks::apply(leaf({1}), sample::vector({1})), AutogradError, "[Marks]",
                "not returned");
  EXPECT_THROWS(Other::apply(leaf({1})), AutogradError, "[Other]", "expected arguments");
}

TEST(Function, AChangeThroughARawPointerIsCounted) {
  struct Raw : Function<Raw> {
    static Tensor forward(FunctionContext& ctx, const Tensor& x) {
      ctx.mark_dirty({x});
      x.data<double>()[0] = 5;
      return x;
    }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
  };
  const Tensor x = leaf({1}) * 1;
  const Tensor y = x * x;  // saves x
  const uint32_t before = x.version();
  Raw::apply(x);
  EXPECT_EQ(x.version(), before + 1);
  EXPECT_THROWS(y.backward(), AutogradError, "[mul.Tensor]", "changed in place");
}

// Results that are arguments or views of them --------------------------------------------------

struct Same : Function<Same> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x; }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad * 10}; }
};
struct Row : Function<Row> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x.select(0, 0); }
  static Gradients backward(FunctionContext&, const Tensor& grad) {
    const Tensor gradient = zeros({2, 2}, DType::kF64);
    gradient.select(0, 0).copy_(grad);
    return {gradient};
  }
};

TEST(Function, AnArgumentThatIsReturnedBecomesAView) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Same::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_EQ(y.data(), x.data());
  EXPECT_TRUE(x.is_leaf());
  EXPECT_EQ(y.grad_fn()->name(), "SameBackward");
  y.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(10, 10));

  const NoGradGuard guard;
  EXPECT_FALSE(Same::apply(x).is_same(x));
  EXPECT_FALSE(Same::apply(x).requires_grad());
}

TEST(Function, AViewMadeInForwardCannotBeChangedInPlace) {
  const Tensor x = sample::matrix(2, 2) * 1;
  const Tensor row = Row::apply(x);
  EXPECT_THROWS(row.mul_(sample::vector({1, 2})), AutogradError, "[mul_.Tensor]", "view");
  EXPECT_THROWS(Same::apply(x).mul_(x), AutogradError, "[mul_.Tensor]", "view");
  row.sum().backward();
  EXPECT_EQ(elements(row.clone()), elements(x.select(0, 0)));
}

TEST(Function, AViewMadeInForwardDoesNotFollowAChangeOfItsBase) {
  const Tensor x = leaf({1, 2}) * 1;
  const Tensor y = Same::apply(x);
  x.mul_(sample::vector({3, 3}));
  EXPECT_THROWS(y.sum(), AutogradError, "[SameBackward]", "clone()");
}

TEST(Function, ATensorReturnedTwiceHasTwoGradients) {
  struct Twice : Function<Twice> {
    static std::tuple<Tensor, Tensor> forward(FunctionContext&, const Tensor& x) {
      const Tensor y = x * 1;
      return {y, y};
    }
    static Gradients backward(FunctionContext&, const Tensor& a, const Tensor& b) {
      return {a + b * 100};
    }
  };
  const Tensor x = leaf({1});
  const auto [a, b] = Twice::apply(x);
  (a + b * 2).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(201));
}

}  // namespace
}  // namespace lockstep
