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
#include "core/ops/matmul/fused_linear.h"
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

constexpr int64_t kSavedRows = 4;
constexpr int64_t kClasses = 5;

Tensor targets() { return tensor_from<int64_t>({1, 0, 4, 2}, {kSavedRows}); }

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

  const Tensor leaf_ = sample::matrix(kSavedRows, kClasses);

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
  std::vector<double> memory(kSavedRows * kClasses, 0.5);
  const Numbers before = memory;
  const Tensor result = [&] {
    Tensor made(
        make_ref<TensorImpl>(make_ref<Storage>(memory.data(), memory.size() * sizeof(double), kCPU),
                             Dims{kSavedRows, kClasses}, Dims{kClasses, 1}, 0, DType::kF64));
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
  const auto expanded = [&] { return loss_of((row * 2).expand({kSavedRows, kClasses})); };
  expanded().backward();
  const Tensor other = row.detach().clone().set_requires_grad();
  const Tensor kept = (other * 2).expand({kSavedRows, kClasses}).clone();
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

/// Where the inputs of products lay, and where their gradients were written.
struct Places {
  const void* input = nullptr;
  const void* input_gradient = nullptr;
  const void* value = nullptr;
  const void* gradient_of_argument = nullptr;
};

/// Three layers of products in f32, whose inputs no other variable holds; backward accumulates the
/// gradients of `leaves`.
Tensor result_of_products(const std::vector<Tensor>& leaves, Places& places) {
  const auto prehook = [](const Tensor& result, const void*& place) {
    register_prehook(*result.grad_fn(),
                     [&place](std::span<Tensor> grads) { place = grads.back().data(); });
  };
  const Tensor made = leaves[0] * 2;
  places.input = made.data();
  prehook(made, places.input_gradient);
  const Gelu gelu = linear_gelu(made, leaves[1], leaves[2]);
  places.value = gelu.value.data();
  prehook(gelu.of, places.gradient_of_argument);
  const Tensor out = linear_of_gelu(gelu, leaves[3], leaves[4], leaves[0]);
  return sum(linear_add(out, out * 3, leaves[5]) * out);
}

TEST(TakenInputs, TakeTheGradientsOfFusedProductsOnceTheWeightsHaveTheirs) {
  for (const bool freezes : {false, true}) {
    std::vector<Tensor> leaves;
    int seed = 0;
    for (const Dims& sizes : {Dims{4, 5}, {6, 5}, {6}, {5, 6}, {5}, {5, 5}}) {
      std::vector<float> numbers(static_cast<size_t>(count_elements(sizes)));
      for (float& each : numbers) each = static_cast<float>(++seed % 7 - 3) / 4;
      leaves.push_back(tensor_from<float>(numbers, sizes));
      leaves.back().set_requires_grad(!freezes || leaves.size() == 1);
    }
    Places kept;
    const Tensor retained = result_of_products(leaves, kept);
    retained.backward({}, /*retain_graph=*/true);
    if (!freezes) {
      EXPECT_NE(kept.input_gradient, kept.input);
      EXPECT_NE(kept.gradient_of_argument, kept.value);
    }
    std::vector<Tensor> expected;
    for (const Tensor& leaf : leaves) {
      if (!leaf.requires_grad()) continue;
      expected.push_back(leaf.grad());
      leaf.set_grad(Tensor());
    }
    Places taken;
    result_of_products(leaves, taken).backward();
    if (!freezes) {  // frozen weights read no input, so that none is kept
      EXPECT_EQ(taken.input_gradient, taken.input);
      EXPECT_EQ(taken.gradient_of_argument, taken.value);
    }
    size_t i = 0;
    for (const Tensor& leaf : leaves) {
      if (!leaf.requires_grad()) continue;
      EXPECT_EQ(elements(leaf.grad()), elements(expected[i++]));
    }
  }
}

}  // namespace
}  // namespace lockstep
