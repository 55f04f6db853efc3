// VjpContext::take_saved, seen through an operator that uses it: the gradient of fused
// cross-entropy overwrites the logits if nothing else can read them.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/hooks.h"
#include "autograd/saved_tensor_hooks.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/stream.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using Numbers = std::vector<double>;

constexpr int64_t kRows = 4;
constexpr int64_t kClasses = 5;

Tensor targets() { return tensor_from<int64_t>({1, 0, 4, 2}, {kRows}); }

/// Logits that are a result, with the place of their elements and of their gradient's.
class TakeSaved : public testing::Test {
 protected:
  Tensor logits() {
    const Tensor made = leaf_ * 2;
    place_ = made.data();
    register_prehook(*made.grad_fn(),
                     [this](std::span<Tensor> grads) { gradient_place_ = grads[0].data(); });
    return made;
  }
  /// The loss of logits that no other variable holds.
  Tensor loss() { return loss_of(logits()); }
  static Tensor loss_of(const Tensor& logits) {
    return cross_entropy_loss(logits, targets(), {}, Reduction::kSum);
  }
  bool took() const { return gradient_place_ == place_; }
  /// Expects the leaf to have `times` the gradient of one loss.
  void expect_gradient(double times = 1) const {
    const Tensor other = leaf_.detach().clone().set_requires_grad();
    const Tensor kept = other * 2;
    loss_of(kept).backward();
    EXPECT_EQ(elements(leaf_.grad()), elements(other.grad() * times));
  }

  const Tensor leaf_ = sample::matrix(kRows, kClasses);

 private:
  const void* place_ = nullptr;
  const void* gradient_place_ = nullptr;
};

TEST_F(TakeSaved, TheGradientOverwritesAResultThatNothingElseReads) {
  loss().backward();
  EXPECT_TRUE(took());
  expect_gradient();
}

TEST_F(TakeSaved, AViewThatIsTheOnlyHolderOfItsBaseIsOverwritten) {
  const auto reshaped = [&] {
    return loss_of(logits().view({2, 2, kClasses}).view({-1, kClasses}));
  };
  reshaped().backward();
  EXPECT_TRUE(took());
  expect_gradient();
}

TEST_F(TakeSaved, WhatAnotherTensorHoldsIsLeftAlone) {
  for (const auto& holder : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& x) { return x; }, [](const Tensor& x) { return x.detach(); },
           [](const Tensor& x) { return x.select(0, 1); }}) {
    leaf_.set_grad(Tensor());
    Tensor held;
    const Tensor result = [&] {
      const Tensor made = logits();
      held = holder(made);
      return loss_of(made);
    }();
    const Numbers before = elements(held);
    result.backward();
    EXPECT_FALSE(took());
    EXPECT_EQ(elements(held), before);
    expect_gradient();
  }
}

TEST_F(TakeSaved, WhatAnotherNodeSavedIsLeftAloneUntilItHasRun) {
  const Tensor result = [&] {
    const Tensor made = logits();
    return loss_of(made) + sum(made * made * 0);
  }();
  result.backward();
  expect_gradient();
}

TEST_F(TakeSaved, TheLastOfTwoLossesTakesTheLogits) {
  const Tensor result = [&] {
    const Tensor made = logits();
    return loss_of(made) + loss_of(made);
  }();
  result.backward();
  expect_gradient(2);
}

TEST_F(TakeSaved, ARetainedGraphKeepsWhatItSaved) {
  const Tensor result = loss();
  result.backward({}, /*retain_graph=*/true);
  EXPECT_FALSE(took());
  result.backward();
  EXPECT_TRUE(took()) << "the second backward frees the graph";
  expect_gradient(2);
}

TEST_F(TakeSaved, ARecordedBackwardKeepsWhatItSaved) {
  const Tensor result = loss();
  GradOptions options;
  options.create_graph = true;
  const Tensor first = grad({result}, {leaf_}, {}, options)[0];
  EXPECT_FALSE(took());
  EXPECT_EQ(grad({sum(first * first)}, {leaf_})[0].sizes().size(), 2U);
}

TEST_F(TakeSaved, WhatHooksKeepIsTheirs) {
  const Tensor result = [&] {
    const SavedTensorHooksGuard guard(
        {[&](const Tensor& tensor) -> std::any { return tensor; },
         [&](const std::any& what) { return std::any_cast<const Tensor&>(what); }});
    return loss();
  }();
  result.backward();
  EXPECT_FALSE(took());
  expect_gradient();
}

TEST_F(TakeSaved, WhatAnotherStreamMayReadIsLeftAlone) {
  const Tensor result = [&] {
    const Tensor made = logits();
    made.record_stream(default_stream(kCPU));
    return loss_of(made);
  }();
  result.backward();
  EXPECT_FALSE(took());
  expect_gradient();
}

TEST_F(TakeSaved, MemoryThatTheCallerOwnsIsLeftAlone) {
  std::vector<double> memory(kRows * kClasses, 0.5);
  const Numbers before = memory;
  const Tensor result = [&] {
    Tensor made(
        make_ref<TensorImpl>(make_ref<Storage>(memory.data(), memory.size() * sizeof(double), kCPU),
                             Dims{kRows, kClasses}, Dims{kClasses, 1}, 0, DType::kF64));
    made.copy_(leaf_ * 2);
    return loss_of(made);
  }();
  const Numbers written = memory;
  EXPECT_NE(written, before);
  result.backward();
  EXPECT_EQ(memory, written);
  expect_gradient();
}

TEST_F(TakeSaved, ElementsThatLieInOnePlaceAreLeftAlone) {
  const Tensor row = sample::matrix(1, kClasses);
  const auto expanded = [&] { return loss_of((row * 2).expand({kRows, kClasses})); };
  expanded().backward();
  const Tensor other = row.detach().clone().set_requires_grad();
  const Tensor kept = (other * 2).expand({kRows, kClasses}).clone();
  loss_of(kept).backward();
  EXPECT_EQ(elements(row.grad()), elements(other.grad()));
}

TEST_F(TakeSaved, ABatchOfGradientsDoesNotFitIntoTheMemoryOfOne) {
  const Tensor result = loss();
  const Tensor scales = sample::vector({1, 2, 4});
  const std::vector<Tensor> got =
      vmap([&](TensorList scale) { return grad({result}, {leaf_}, {scale[0]}); }, {scales});
  EXPECT_FALSE(took());
  EXPECT_EQ(got[0].sizes().size(), 3U);
  EXPECT_EQ(elements(got[0].select(0, 2)), elements(got[0].select(0, 0) * 4));
}

TEST_F(TakeSaved, ASecondBackwardSaysThatTheTensorsWereFreed) {
  const Tensor result = loss();
  result.backward();
  EXPECT_THROWS(result.backward(), AutogradError, "already ran through it", "retain_graph");
}

TEST_F(TakeSaved, ATensorChangedInPlaceIsStillNoticed) {
  const Tensor result = [&] {
    const Tensor made = logits();
    const Tensor lost = loss_of(made);
    mul_(made.detach(), 2);
    return lost;
  }();
  EXPECT_THROWS(result.backward(), AutogradError, "changed in place", "expected at version 0");
}

}  // namespace
}  // namespace lockstep
