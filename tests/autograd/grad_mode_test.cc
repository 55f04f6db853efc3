#include "autograd/grad_mode.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::leaf;

TEST(GradMode, ResultsRequireGradWhenAnArgumentDoes) {
  const Tensor x = leaf({1, 2});
  const Tensor c = sample::vector({1, 2});
  EXPECT_TRUE((x * c).requires_grad());
  EXPECT_FALSE((c * c).requires_grad());
  EXPECT_FALSE((x * c).is_leaf());
  EXPECT_TRUE(x.is_leaf());
}

TEST(GradMode, NothingIsRecordedUnderNoGradGuard) {
  const Tensor x = leaf({1, 2});
  {
    const NoGradGuard guard;
    EXPECT_FALSE(is_grad_enabled());
    const Tensor y = x * x;
    EXPECT_FALSE(y.requires_grad());
    EXPECT_TRUE(x.requires_grad());
  }
  EXPECT_TRUE(is_grad_enabled());
}

TEST(GradMode, GuardsNestAndAreUndoneByExceptions) {
  const NoGradGuard outer;
  {
    const EnableGradGuard inner;
    EXPECT_TRUE(is_grad_enabled());
    const SetGradEnabled off(false);
    EXPECT_FALSE(is_grad_enabled());
  }
  EXPECT_FALSE(is_grad_enabled());
  try {
    const EnableGradGuard inner;
    throw DataError("x");
  } catch (const DataError&) {
  }
  EXPECT_FALSE(is_grad_enabled());
}

TEST(GradMode, IsOfOneThread) {
  const NoGradGuard guard;
  bool enabled = false;
  std::thread([&] { enabled = is_grad_enabled(); }).join();
  EXPECT_TRUE(enabled);
}

TEST(GradMode, TheKeySetSaysWhetherATensorRequiresGrad) {
  const Tensor x = sample::vector({1});
  EXPECT_FALSE(x.key_set().has(Key::kAutograd));
  x.set_requires_grad();
  EXPECT_TRUE(x.key_set().has(Key::kAutograd));
  x.set_requires_grad(false);
  EXPECT_FALSE(x.key_set().has(Key::kAutograd));
}

TEST(GradMode, OnlyFloatingTensorsMayRequireGrad) {
  const Tensor n = tensor_from<int64_t>({1}, {1});
  EXPECT_THROWS(n.set_requires_grad(), AutogradError, "int64", "to(dtype)");
}

TEST(GradMode, AComputedTensorCannotStopRequiringGrad) {
  const Tensor y = leaf({1}) * 2;
  EXPECT_THROWS(y.set_requires_grad(false), AutogradError, "detach()");
}

TEST(GradMode, DetachLeavesTheGraphAndSharesTheElements) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  const Tensor d = y.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_EQ(d.data(), y.data());
  d.mul_(sample::leaf({3, 3}));  // recorded for d alone
  EXPECT_TRUE(d.requires_grad());
  EXPECT_EQ(d.version(), y.version());
}

TEST(GradMode, ComparisonsAndDeclaredConstantsDoNotRequireGrad) {
  const Tensor x = leaf({1, 2});
  EXPECT_FALSE(gt(x, 1.5).requires_grad());
  EXPECT_FALSE(sample::constant(x).requires_grad());
}

TEST(GradMode, AnOperatorWithoutDerivativeOrReasonIsAnErrorAtTheCall) {
  EXPECT_THROWS(sample::silent(leaf({1})), AutogradError, "[test_silent]", "no derivative");
  const NoGradGuard guard;
  EXPECT_NO_THROW(sample::silent(leaf({1})));
}

TEST(GradMode, ABackwardOperatorWithoutDerivativeFailsOnlyWhenDifferentiated) {
  const Tensor x = leaf({1});
  const Tensor y = sample::copy_backward(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_THROWS((y + x).backward(), AutogradError, "test_copy_backward", "nobody has written it");
}

TEST(GradMode, OutFormsAreNotRecorded) {
  const Tensor x = leaf({1, 2});
  const Tensor out = sample::vector({0, 0});
  EXPECT_THROWS(add_out(out, x, x), AutogradError, "out=", "new tensor");
  const NoGradGuard guard;
  EXPECT_NO_THROW(add_out(out, x, x));
}

TEST(InferenceMode, RecordsNothingAndEndsWithItsScope) {
  const Tensor w = ones({2}).set_requires_grad();
  {
    const InferenceModeGuard guard;
    EXPECT_TRUE(is_inference_mode_enabled());
    const Tensor y = w * 2;
    EXPECT_FALSE(y.requires_grad());
    EXPECT_TRUE(y.is_inference());
    {
      const InferenceModeGuard off(false);
      EXPECT_TRUE((w * 2).requires_grad());
    }
  }
  EXPECT_FALSE(is_inference_mode_enabled());
  EXPECT_TRUE((w * 2).requires_grad());
}

TEST(InferenceMode, ItsTensorsAreReadButNeitherChangedNorSavedOutside) {
  Tensor made;
  {
    const InferenceModeGuard guard;
    made = ones({2});
    made.add_(made);
    EXPECT_EQ(made.data<float>()[0], 2);
  }
  const Tensor view = made.view({2, 1});
  EXPECT_TRUE(view.is_inference());
  EXPECT_EQ((made + 1.0).data<float>()[0], 3);
  EXPECT_THROW(made.add_(made), AutogradError);
  EXPECT_THROW(view.zero_(), AutogradError);
  EXPECT_THROW(made.set_requires_grad(), AutogradError);
  const Tensor w = ones({2}).set_requires_grad();
  EXPECT_THROW(w * made, AutogradError) << "it would be saved for the gradient of w";
  EXPECT_TRUE((w + made).requires_grad()) << "nothing is saved";
  EXPECT_TRUE((w * made.clone()).requires_grad());
}

TEST(InferenceMode, ViewsOfOtherTensorsStayOrdinary) {
  const Tensor x = ones({4});
  const InferenceModeGuard guard;
  const Tensor view = x.view({2, 2});
  EXPECT_FALSE(view.is_inference());
  EXPECT_TRUE(view.base().is_same(x));
}

TEST(InferenceMode, ViewsOfItsTensorsAreNotRecorded) {
  const InferenceModeGuard guard;
  const Tensor x = ones({4});
  const Tensor view = x.view({2, 2});
  EXPECT_FALSE(view.is_view());
  EXPECT_EQ(view.data(), x.data());
}

}  // namespace
}  // namespace lockstep
