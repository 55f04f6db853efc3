#include "autograd/saved_tensor_hooks.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using Numbers = std::vector<double>;

/// Hooks that return tensors unchanged and count the calls.
struct Counter {
  int packed = 0;
  int unpacked = 0;

  SavedTensorHooks hooks() {
    return {[this](const Tensor& tensor) -> std::any {
              ++packed;
              return tensor;
            },
            [this](const std::any& what) {
              ++unpacked;
              return std::any_cast<Tensor>(what);
            }};
  }
};

TEST(SavedTensorHooks, PackWhatIsSavedAndUnpackWhatIsRead) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  Counter counter;
  Tensor z;
  {
    const SavedTensorHooksGuard guard(counter.hooks());
    z = x * y;
  }
  EXPECT_EQ(counter.packed, 2);
  EXPECT_EQ(counter.unpacked, 0);
  z.sum().backward();
  EXPECT_EQ(counter.unpacked, 2);
  EXPECT_EQ(elements(x.grad()), (Numbers{3, 4}));
  EXPECT_EQ(elements(y.grad()), (Numbers{1, 2}));
}

TEST(SavedTensorHooks, MayKeepAnythingInATensorsPlace) {
  const Tensor x = leaf({1, 2});
  Tensor y;
  {
    const SavedTensorHooksGuard guard(
        {[](const Tensor& tensor) -> std::any { return elements(tensor); },
         [](const std::any& what) {
           const auto& numbers = std::any_cast<const Numbers&>(what);
           return sample::vector({numbers[0], numbers[1]});
         }});
    y = x.exp();
  }
  y.sum().backward();
  EXPECT_EQ(elements(x.grad()), elements(y));
}

TEST(SavedTensorHooks, TheInnermostGuardDecidesAndPackRunsUnderTheOuterOne) {
  const Tensor x = leaf({2});
  Counter outer, inner;
  int saved_in_pack = -1;
  Tensor z;
  {
    const SavedTensorHooksGuard outside(outer.hooks());
    SavedTensorHooks hooks = inner.hooks();
    hooks.pack = [&, pack = hooks.pack](const Tensor& tensor) {
      EXPECT_FALSE(is_grad_enabled());
      const EnableGradGuard recording;
      const Tensor other = leaf({5}) * leaf({6});
      saved_in_pack = outer.packed;
      return pack(tensor);
    };
    const SavedTensorHooksGuard inside(hooks);
    z = x.exp();
  }
  EXPECT_EQ(inner.packed, 1);
  EXPECT_EQ(saved_in_pack, 2) << "an operator inside pack saves by the outer hooks";
  z.sum().backward();
  EXPECT_EQ(inner.unpacked, 1);
}

TEST(SavedTensorHooks, HigherDerivativesGoThroughWhatWasUnpacked) {
  const Tensor x = leaf({2});
  Counter counter;
  const SavedTensorHooksGuard guard(counter.hooks());
  const Tensor y = (x * x * x).sum();
  GradOptions options;
  options.create_graph = true;
  const Tensor first = grad({y}, {x}, {}, options)[0];
  EXPECT_EQ(elements(first), Numbers{12});
  EXPECT_EQ(elements(grad({first.sum()}, {x})[0]), Numbers{12});
  const Tensor e = x.exp();  // saves its own result
  const Tensor slope = grad({e.sum()}, {x}, {}, options)[0];
  EXPECT_EQ(elements(grad({slope.sum()}, {x})[0]), elements(e));
}

TEST(SavedTensorHooks, AreNotAskedWhereNothingIsRecorded) {
  Counter counter;
  const SavedTensorHooksGuard guard(counter.hooks());
  const NoGradGuard no_grad;
  leaf({2}).exp();
  EXPECT_EQ(counter.packed, 0);
}

TEST(SavedTensorHooks, RetainGraphUnpacksAgain) {
  const Tensor x = leaf({2});
  Counter counter;
  Tensor y;
  {
    const SavedTensorHooksGuard guard(counter.hooks());
    y = x.exp().sum();
  }
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(counter.unpacked, 2);
  EXPECT_THROWS(y.backward(), AutogradError, "retain_graph");
}

TEST(SavedTensorHooks, WhatIsPackedIsFreedWithTheGraph) {
  std::weak_ptr<int> alive;
  Tensor y;
  {
    const auto token = std::make_shared<int>(1);
    alive = token;
    const SavedTensorHooksGuard guard(
        {[token](const Tensor& tensor) -> std::any { return std::pair(token, tensor); },
         [](const std::any& what) {
           return std::any_cast<const std::pair<std::shared_ptr<int>, Tensor>&>(what).second;
         }});
    y = leaf({2}).exp().sum();
  }
  EXPECT_FALSE(alive.expired());
  y.backward();
  EXPECT_TRUE(alive.expired());
}

TEST(SavedTensorHooks, PackMayNotChangeTheTensor) {
  const Tensor x = leaf({2});
  const SavedTensorHooksGuard guard(
      {[](const Tensor& tensor) -> std::any {
         tensor.add_(tensor);
         return tensor;
       },
       [](const std::any& what) { return std::any_cast<Tensor>(what); }});
  EXPECT_THROWS(x.exp(), AutogradError, "[saved_tensor_hooks]", "in place");
}

TEST(SavedTensorHooks, UnpackMustGiveTheSameKindOfTensor) {
  const Tensor x = leaf({2, 3});
  const auto unpacking = [&](Tensor result) {
    const SavedTensorHooksGuard guard(
        {[](const Tensor&) { return std::any(); }, [result](const std::any&) { return result; }});
    return x.exp().sum();
  };
  EXPECT_THROWS(unpacking({}).backward(), AutogradError, "undefined", "exp");
  EXPECT_THROWS(unpacking(sample::vector({1})).backward(), AutogradError, "expected float64[2]",
                "float64[1]");
  EXPECT_THROWS(unpacking(sample::vector({1, 2}).to(DType::kF32)).backward(), AutogradError,
                "float32[2]");
}

TEST(SavedTensorHooks, WhatTheyThrowReachesTheCaller) {
  const Tensor x = leaf({2});
  {
    const SavedTensorHooksGuard guard({[](const Tensor&) -> std::any { throw DataError("pack"); },
                                       [](const std::any&) { return Tensor(); }});
    EXPECT_THROWS(x.exp(), DataError, "pack");
  }
  Tensor y;
  {
    const SavedTensorHooksGuard guard(
        {[](const Tensor& tensor) -> std::any { return tensor; },
         [](const std::any&) -> Tensor { throw DataError("unpack"); }});
    y = x.exp().sum();
  }
  EXPECT_THROWS(y.backward(), DataError, "unpack");
  EXPECT_FALSE(x.grad().defined());
}

}  // namespace
}  // namespace lockstep
