// In-place changes and views: which are allowed, how they are recorded, and what backward detects.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/node.h"
#include "core/base/error.h"
#include "core/dispatch/call_op.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

TEST(InPlace, AComputedTensorCarriesTheNewHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x + 1;
  y.mul_(sample::vector({5, 7}));
  EXPECT_EQ(y.grad_fn()->name(), "MulBackward0");
  y.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(5, 7));
}

TEST(InPlace, AnOverwrittenArgumentThatIsNeededIsKept) {
  const Tensor x = leaf({1, 2});
  const Tensor w = leaf({5, 7});
  const Tensor y = x + 1;
  y.mul_(w);  // the derivative for w reads the old y
  y.sum().backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(2, 3));
  EXPECT_THAT(elements(x.grad()), ElementsAre(5, 7));
}

TEST(InPlace, ACompositeThatOverwritesWhatItsDerivativeNeedsHasOne) {
  const auto f = [](TensorList in) {
    const Tensor y = in[0] + 1;
    call_op("polygamma_", {y, 0});
    return y;
  };
  EXPECT_TRUE(gradcheck(f, {leaf({1, 2})}));
}

TEST(InPlace, ATensorBeginsToRequireGradThroughItsOtherArgument) {
  const Tensor w = leaf({5, 7});
  const Tensor y = sample::vector({2, 3});
  y.mul_(w);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  y.sum().backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(2, 3));
}

TEST(InPlace, AResultThatIsSavedGetsItsHistoryBack) {
  const Tensor x = leaf({-1, 2});
  const Tensor y = x * 3;
  relu_(y);
  y.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(0, 3));
}

TEST(InPlace, LeavesThatRequireGradAreRefused) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROWS(x.mul_(sample::vector({1, 2})), AutogradError, "[mul_.Tensor]", "leaf",
                "NoGradGuard");
  EXPECT_THROWS(x.slice(0, 0, 1).mul_(sample::vector({1})), AutogradError, "view of a leaf");
  const NoGradGuard guard;
  x.mul_(sample::vector({3, 3}));
  EXPECT_THAT(elements(x), ElementsAre(3, 6));
  EXPECT_TRUE(x.is_leaf());
}

TEST(InPlace, AChangeWithoutDerivativeIsRefusedOnWhatRequiresGrad) {
  static const Operator& op = dispatcher().find("test_constant_");
  const Tensor y = leaf({1}) * 2;
  std::array<Value, 1> arguments{Value(y)};
  Stack stack(arguments);
  EXPECT_THROWS(op.call_boxed(stack), AutogradError, "test_constant_", "as a constant");
}

TEST(InPlace, AChangeWithoutDerivativeLeavesAViewAView) {
  const Tensor x = leaf({1}), base = sample::vector({1, 2});
  const Tensor view = base.slice(0, 0, 1);
  call_op("eq_.Tensor", {Value(view), Value(x)});
  EXPECT_TRUE(view.is_view());
  view.mul_(x);
  EXPECT_TRUE(base.requires_grad()) << "later changes of the view are recorded for its base";
  EXPECT_THAT(elements(base), ElementsAre(1, 2));
}

TEST(InPlace, ASavedTensorChangedSinceNamesOperatorShapeAndVersions) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  const Tensor z = y * y;
  y.add_(sample::vector({1, 1}));
  y.add_(sample::vector({1, 1}));
  EXPECT_THROWS(z.sum().backward(), AutogradError, "[mul.Tensor]", "float64[2]",
                "expected at version 0", "got version 2", "clone()");
}

TEST(InPlace, AChangeThroughAViewOrADetachedAliasIsNoticed) {
  const Tensor x = leaf({1, 2});
  {
    const Tensor y = x * 2;
    const Tensor z = y * y;
    y.slice(0, 0, 1).zero_();
    EXPECT_THROWS(z.sum().backward(), AutogradError, "version");
  }
  const Tensor y = x * 2;
  const Tensor z = y * y;
  y.detach().zero_();
  EXPECT_THROWS(z.sum().backward(), AutogradError, "version");
}

TEST(InPlace, AChangeOfAResultThatIsSavedIsNoticed) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x.exp();
  y.add_(sample::vector({1, 1}));
  EXPECT_THROWS(y.sum().backward(), AutogradError, "[exp]", "a result of exp");
}

TEST(InPlace, ATensorCanBeMultipliedByItself) {
  const Tensor x = leaf({2, 3});
  const Tensor y = x * 1;
  y.mul_(y);
  y.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(4, 6));
}

TEST(InPlace, AnArgumentThatSharesTheChangedMemoryIsNoticed) {
  const Tensor y = leaf({2, 3}) * 1;
  y.mul_(y.slice(0, 0, 1).expand({2}).contiguous());
  const Tensor z = leaf({2, 3}) * 1;
  z.slice(0, 0, 1).mul_(z.slice(0, 1, 2));
  EXPECT_NO_THROW(y.sum().backward());
  EXPECT_THROWS(z.sum().backward(), AutogradError, "version");
}

TEST(InPlace, AChangeOfWhatNobodyNeedsIsFine) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  const Tensor z = y + 1;  // saves nothing
  y.zero_();
  z.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 2));
}

TEST(InPlaceOnViews, TheBaseFollows) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor w = leaf({10});
  const Tensor y = x * 2;
  y.slice(0, 1, 2).mul_(w);
  EXPECT_EQ(y.grad_fn()->name(), "CopySlices");
  (y * sample::vector({1, 2, 3})).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 40, 6));
  EXPECT_THAT(elements(w.grad()), ElementsAre(8));
}

TEST(InPlaceOnViews, ABaseWithoutHistoryGetsOne) {
  const Tensor w = leaf({5, 6});
  const Tensor buffer = sample::vector({0, 0, 0, 0});
  buffer.slice(0, 1, 3).copy_(w);
  EXPECT_TRUE(buffer.requires_grad());
  (buffer * sample::vector({1, 2, 3, 4})).sum().backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(2, 3));
}

TEST(InPlaceOnViews, TheChangedViewAndItsSiblingsFollow) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 2;
  const Tensor changed = y.slice(0, 0, 2);
  const Tensor sibling = y.slice(0, 1, 3);
  changed.mul_(sample::vector({10, 100}));
  (changed.sum() + sibling.sum()).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(20, 400, 2));
}

TEST(InPlaceOnViews, AChangeOfTheBaseReachesItsViews) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 2;
  const Tensor view = y.slice(0, 1, 3);
  y.mul_(sample::vector({5, 6, 7}));
  view.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(0, 12, 14));
}

TEST(InPlaceOnViews, TransposedAndNestedViewsKeepTheirGeometry) {
  const Tensor x = sample::matrix(2, 3);
  const Tensor factor = sample::vector({3, 5});
  const auto f = [&](TensorList in) {
    const Tensor y = in[0] * 1;
    y.t().slice(0, 1, 3).mul_(in[1]);
    return y * y;
  };
  EXPECT_TRUE(gradcheck(f, {x, factor.set_requires_grad()}));
  EXPECT_TRUE(gradgradcheck(f, {x, factor}));
}

TEST(InPlaceOnViews, ASavedResultLeadsBackThroughTheBaseInSecondDerivatives) {
  const auto f = [](TensorList in) {
    const Tensor y = in[0] * 1;
    relu_(y.slice(0, 0, 2));
    return y * y * y;
  };
  EXPECT_TRUE(gradcheck(f, {leaf({0.5, -1, 2})}));
  EXPECT_TRUE(gradgradcheck(f, {leaf({0.5, -1, 2})}));
}

TEST(InPlaceOnViews, AChangeOfADetachedTensorIsNotRecordedInTheOriginal) {
  const Tensor x = leaf({1, 2});
  const Tensor w = leaf({5, 7});
  const Tensor y = x * 1;
  const Tensor detached = y.detach();
  detached.mul_(w);
  EXPECT_EQ(y.grad_fn()->name(), "MulBackward1");
  detached.sum().backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(1, 2));
  EXPECT_FALSE(x.grad().defined()) << elements(x.grad())[0];
}

TEST(InPlaceOnViews, AViewOfADetachedSliceIsChangedAtItsPlaceInTheSlice) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor w = leaf({10});
  const Tensor slice =
      (x * 1).slice(0, 1, 4).detach();  // its first element is its storage's second
  slice.slice(0, 1, 2).mul_(w);
  (slice * sample::vector({2, 3, 5})).sum().backward();
  EXPECT_THAT(elements(slice), ElementsAre(2, 30, 4));
  EXPECT_THAT(elements(w.grad()), ElementsAre(9));
  EXPECT_FALSE(x.grad().defined());
}

TEST(InPlaceOnViews, PartsOfASplitAreRefused) {
  const Tensor y = leaf({1, 2, 3}) * 2;
  const std::vector<Tensor> parts = y.split(2);
  EXPECT_THROWS(parts[0].mul_(sample::vector({1, 2})), AutogradError, "split", "slice()");
}

TEST(InPlaceOnViews, AViewOfATensorThatLeftTheGraphKeepsItsHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  const Tensor view = y.slice(0, 0, 1);
  y.detach_();
  y.add_(sample::vector({5, 6}));
  EXPECT_EQ(elements(view), std::vector<double>{8});
  view.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 0));
}

TEST(InPlaceOnViews, PartsOfASplitDoNotFollowTheirBase) {
  const Tensor y = leaf({1, 2, 3}) * 2;
  const std::vector<Tensor> parts = y.split(2);
  y.mul_(sample::vector({1, 2, 3}));
  EXPECT_THROWS(parts[0].sum(), AutogradError, "several at a time");
}

TEST(InPlaceOnViews, ViewsMadeWithoutRecordingAreRefused) {
  const Tensor y = leaf({1, 2, 3}) * 2;
  Tensor view;
  {
    const NoGradGuard guard;
    view = y.slice(0, 0, 2);
  }
  EXPECT_THROWS(view.mul_(leaf({1, 2})), AutogradError, "recording was off");
}

TEST(InPlaceOnViews, APersistentViewOfAParameterSurvivesItsUpdates) {
  const Tensor parameter = leaf({1, 2, 3, 4});
  const std::vector<Tensor> parts = parameter.split(2);
  {
    const NoGradGuard guard;
    parameter.mul_(sample::vector({2, 2, 2, 2}));
  }
  parts[1].sum().backward();
  EXPECT_THAT(elements(parameter.grad()), ElementsAre(0, 0, 1, 1));
}

TEST(InPlaceGeometry, ATensorTransposedInPlaceCarriesTheTransposesHistory) {
  const Tensor x = sample::matrix(2, 3);
  const Tensor y = x * 2;
  call_op("t_", {Value(y)});
  EXPECT_EQ(to_string(y.sizes()), "[3, 2]");
  EXPECT_EQ(y.grad_fn()->name(), "TBackward0");
  const Tensor weight = sample::matrix(3, 2, false);
  (y * weight).sum().backward();
  EXPECT_EQ(sample::elements(x.grad()), sample::elements(weight.t() * 2));
}

TEST(InPlaceGeometry, OfAViewLeavesTheBaseAsItIs) {
  const Tensor x = sample::matrix(2, 3);
  const Tensor y = x * 2;
  const Tensor row = y.select(0, 1);
  call_op("unsqueeze_", {Value(row), Value(int64_t{1})});
  EXPECT_EQ(to_string(row.sizes()), "[3, 1]");
  EXPECT_EQ(to_string(y.sizes()), "[2, 3]");
  (row.sum() * 5 + y.sum()).backward();
  EXPECT_THAT(sample::elements(x.grad()), ElementsAre(2, 2, 2, 12, 12, 12));
}

TEST(InPlaceGeometry, CountsAsAChangeOfWhatWasSaved) {
  const Tensor x = sample::matrix(2, 3);
  const Tensor y = x * 2;
  const Tensor z = y * y;
  call_op("t_", {Value(y)});
  EXPECT_THROWS(z.sum().backward(), AutogradError, "changed in place");
  EXPECT_THROWS(call_op("t_", {Value(x)}), AutogradError, "[t_]", "leaf");
}

TEST(DetachInPlace, MakesALeafOfAComputedTensor) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  const Tensor before = y * y;
  call_op("detach_", {Value(y)});
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  before.sum().backward();  // a graph recorded before detach_ stays intact
  EXPECT_THAT(sample::elements(x.grad()), ElementsAre(8, 16));
  EXPECT_FALSE((y * 3).requires_grad());
}

TEST(DetachInPlace, StopsALeafFromRequiringGrad) {
  const Tensor x = leaf({1});
  call_op("detach_", {Value(x)});
  EXPECT_FALSE(x.requires_grad());
}

TEST(DetachInPlace, IsNotForViews) {
  const Tensor y = leaf({1, 2}) * 2;
  const Tensor view = y.select(0, 0);
  EXPECT_THROWS(call_op("detach_", {Value(view)}), AutogradError, "[detach_]", "detach()");
  EXPECT_TRUE(view.requires_grad());
}

}  // namespace
}  // namespace lockstep
