// resize_ and set_ of tensors that autograd knows.

#include "core/ops/view/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
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

TEST(Resize, IsRefusedWhereATensorRequiresGrad) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROWS(x.resize_({1}), AutogradError, "[resize_]", "requires grad");
  EXPECT_THROWS((x * 2).resize_({1}), AutogradError, "[resize_]");
  {
    const NoGradGuard guard;
    EXPECT_THROWS(x.resize_({1}), AutogradError, "[resize_]");
    EXPECT_THROWS(x.view({2, 1}).resize_({1}), AutogradError, "[resize_]", "view");
  }
  EXPECT_THROWS(x.detach().set_requires_grad().resize_({1}), AutogradError, "[resize_]");
}

TEST(Resize, OfATensorNeededForAGradientIsFound) {
  const Tensor w = leaf({1, 2});
  const Tensor x = sample::vector({3, 4});
  const Tensor y = (w * x).sum();
  x.resize_({1});
  EXPECT_THROWS(y.backward(), AutogradError, "changed in place");
}

TEST(Set, OfATensorNeededForAGradientIsFoundWhateverTheVersionOfItsNewStorage) {
  const Tensor w = leaf({1, 2});
  const Tensor x = sample::vector({3, 4});
  const Tensor source = sample::vector({5, 6});
  x.zero_();
  source.zero_();  // equal versions
  const Tensor y = (w * x).sum();
  x.set_(source);
  EXPECT_THROWS(y.backward(), AutogradError, "changed in place");
  const Tensor z = (w * source).sum();
  x.set_(sample::vector({7, 8}));
  z.backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(0, 0)) << "the source itself was not changed";
}

TEST(Set, GivesALeafOtherElementsWhereNothingIsRecorded) {
  const Tensor w = leaf({1, 2});
  EXPECT_THROWS(w.set_(sample::vector({3, 4})), AutogradError, "[set_]", "NoGradGuard");
  {
    const NoGradGuard guard;
    w.set_(sample::vector({3, 4}));
  }
  EXPECT_TRUE(w.requires_grad());
  (w * w).sum().backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(6, 8));
}

TEST(Set, IsRefusedWhereItWouldLoseAHistory) {
  const Tensor w = leaf({1, 2});
  const Tensor x = sample::vector({3, 4});
  EXPECT_THROWS(x.set_(w * 2), AutogradError, "[set_]", "source requires grad");
  const Tensor computed = w * 2;
  const NoGradGuard guard;
  EXPECT_THROWS(computed.set_(x), AutogradError, "[set_]");
  EXPECT_THROWS(w.view({2, 1}).set_(x), AutogradError, "[set_]", "view");
}

TEST(Resize, OfTensorsMadeInInferenceModeIsRefusedOutsideIt) {
  Tensor made;
  {
    const InferenceModeGuard guard;
    made = ones({4});
    made.resize_({2});
  }
  EXPECT_THROWS(made.resize_({1}), AutogradError, "inference mode");
  EXPECT_THROWS(made.set_(), AutogradError, "inference mode");
  EXPECT_THROWS(ones({4}).set_(made), AutogradError, "inference mode");
}

}  // namespace
}  // namespace lockstep
