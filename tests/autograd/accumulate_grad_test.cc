#include "autograd/accumulate_grad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "core/device/copies.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::Each;
using ::testing::ElementsAre;

TEST(AccumulateGrad, TakesOverAGradientThatNobodyElseHolds) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * sample::vector({3, 4});
  const int64_t before = allocator(kCPU).stats().allocations;
  y.backward(sample::vector({1, 1}));
  // The weight and the product; accumulation allocated nothing.
  EXPECT_EQ(allocator(kCPU).stats().allocations - before, 2);
}

TEST(AccumulateGrad, CopiesAGradientThatTheCallerHolds) {
  const Tensor x = leaf({1, 2});
  const Tensor weight = sample::vector({3, 4});
  x.backward(weight);
  EXPECT_FALSE(x.grad().is_same(weight));
  EXPECT_NE(x.grad().data(), weight.data());
  x.backward(weight);
  EXPECT_THAT(elements(weight), ElementsAre(3, 4));
  EXPECT_THAT(elements(x.grad()), ElementsAre(6, 8));
}

TEST(AccumulateGrad, LeavesThatShareAGradientGetTheirOwn) {
  const Tensor a = leaf({1, 2});
  const Tensor b = leaf({1, 2});
  // The derivative of the sum passes one tensor on to both, which no caller holds.
  ((a + b) * sample::vector({3, 4})).sum().backward();
  EXPECT_NE(a.grad().data(), b.grad().data());
  a.grad().mul_(sample::vector({10, 10}));
  (b * 5).sum().backward();
  EXPECT_THAT(elements(a.grad()), ElementsAre(30, 40));
  EXPECT_THAT(elements(b.grad()), ElementsAre(8, 9));
}

TEST(AccumulateGrad, GradientsHaveTheLayoutOfTheirLeaf) {
  const Tensor x = sample::matrix(2, 3);
  x.t().backward(sample::matrix(3, 2, false));
  EXPECT_THAT(x.grad().strides(), ElementsAre(3, 1));
  const Tensor transposed = sample::matrix(2, 3, false).t().detach();
  transposed.set_requires_grad();
  (transposed * 1).sum().backward();
  EXPECT_THAT(transposed.grad().strides(), ElementsAre(1, 3));
  const Tensor expanded = sample::matrix(1, 3).detach().expand({4, 3}).detach();
  expanded.set_requires_grad();
  (expanded * 2).sum().backward();
  EXPECT_THAT(expanded.grad().strides(), ElementsAre(3, 1));
}

TEST(AccumulateGrad, UnderCreateGraphTheSumIsANewTensorWithHistory) {
  const Tensor x = leaf({1, 2});
  (x * x).sum().backward({}, false, true);
  const Tensor first = x.grad();
  EXPECT_TRUE(first.requires_grad());
  (x * x).sum().backward({}, false, true);
  EXPECT_FALSE(x.grad().is_same(first));
  EXPECT_THAT(elements(first), ElementsAre(2, 4));
  EXPECT_THAT(elements(x.grad()), ElementsAre(4, 8));
}

TEST(AccumulateGrad, AGradientCanBeSetAndCleared) {
  const Tensor x = leaf({1, 2});
  x.set_grad(sample::vector({1, 1}));
  (x * 2).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 3));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
  EXPECT_THROWS(x.set_grad(sample::vector({1})), ShapeError,
                "[set_grad] the gradient has the wrong shape: expected [2], got [1].");
  EXPECT_THROWS(x.set_grad(sample::vector({1, 2}).to(DType::kF32)), DTypeError,
                "[set_grad] the gradient has the wrong dtype: expected float64, got float32.");
  EXPECT_THROWS(x.set_grad(empty({2}, {DType::kF64, kMeta})), DeviceError,
                "[set_grad] the gradient is on the wrong device: expected cpu, got meta.");
  EXPECT_FALSE(x.grad().defined());
  const Tensor plain = sample::vector({1});
  plain.set_grad({});
  EXPECT_FALSE(plain.grad().defined());
}

TEST(AccumulateGrad, AGradientForALeafThatIsGoneIsDropped) {
  Tensor loss;
  const Tensor kept = leaf({1});
  {
    const Tensor gone = leaf({1});
    loss = gone + kept;
  }
  loss.backward();
  EXPECT_THAT(elements(kept.grad()), ElementsAre(1));
}

TEST(AccumulateGrad, ThreadsMayShareALeaf) {
  const Tensor x = leaf({1, 2});
  constexpr int kThreads = 4;
  constexpr int kSteps = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&x] {
      for (int step = 0; step < kSteps; ++step) (x * x).sum().backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2 * kThreads * kSteps, 4 * kThreads * kSteps));
}

// --- destinations ---

int64_t copies() { return hidden_copies().copies; }

TEST(GradDestination, ADerivativeThatAsksWritesThere) {
  const Tensor w = sample::matrix(3, 2);
  const Tensor x = sample::matrix(4, 3, false);
  const Tensor place = zeros({3, 2}, DType::kF64);
  set_grad_destination(w, place);
  const int64_t before = copies();
  mm(x, w).backward(ones({4, 2}, DType::kF64));
  EXPECT_TRUE(w.grad().is_same(place));
  EXPECT_EQ(copies(), before);
  const Tensor reference = sample::matrix(3, 2);
  mm(x, reference).sum().backward();
  EXPECT_EQ(elements(place), elements(reference.grad()));
}

TEST(GradDestination, ACastBetweenTheLeafAndItsUseWritesThere) {
  const Tensor w = ones({3, 2}, DType::kF32).set_requires_grad();
  const Tensor x = sample::matrix(4, 3, false);
  const Tensor place = zeros({3, 2}, DType::kF32);
  set_grad_destination(w, place);
  const int64_t before = copies();
  mm(x, w.to(DType::kF64)).backward(ones({4, 2}, DType::kF64));
  EXPECT_TRUE(w.grad().is_same(place));
  EXPECT_EQ(copies(), before);
}

TEST(GradDestination, ViewsOfTheLeafPassThePlaceOn) {
  const Tensor w = sample::matrix(2, 3);
  const Tensor x = sample::matrix(4, 3, false);
  const Tensor place = zeros({2, 3}, DType::kF64);
  set_grad_destination(w, place);
  const int64_t before = copies();
  mm(x, w.t()).backward(ones({4, 2}, DType::kF64));
  EXPECT_TRUE(w.grad().is_same(place));
  EXPECT_EQ(copies(), before);
  const Tensor reference = sample::matrix(2, 3);
  mm(x, reference.t()).sum().backward();
  EXPECT_EQ(elements(place), elements(reference.grad()));
}

TEST(GradDestination, AViewByStorageOffsetsDoesNotWriteBesideThePlace) {
  const Tensor storage = sample::matrix(4, 2, false);
  const Tensor w = storage.slice(0, 2, 4).detach().set_requires_grad();  // offset 4 of its storage
  const Tensor x = sample::matrix(3, 2, false);
  const Tensor arena = full({4, 2}, 1000.0, DType::kF64);
  const Tensor place = arena.slice(0, 0, 2);  // offset 0, followed by another parameter's gradient
  set_grad_destination(w, place);
  mm(x, w.as_strided({2, 2}, {2, 1}, 4)).backward(ones({3, 2}, DType::kF64));
  EXPECT_THAT(elements(arena.slice(0, 2, 4)), Each(1000));
  const Tensor reference = w.detach().clone().set_requires_grad();
  mm(x, reference).sum().backward();
  EXPECT_EQ(elements(place), elements(reference.grad()));
}

TEST(GradDestination, OtherGradientsAreCopiedThereAndCounted) {
  const Tensor x = leaf({1, 2});
  const Tensor place = zeros({2}, DType::kF64);
  set_grad_destination(x, place);
  const int64_t before = copies();
  (x * sample::vector({3, 4})).sum().backward();
  EXPECT_EQ(copies(), before + 1);
  EXPECT_TRUE(x.grad().is_same(place));
  EXPECT_THAT(elements(place), ElementsAre(3, 4));
}

TEST(GradDestination, SeveralContributionsAreSummedBeforeTheyArrive) {
  const Tensor w = sample::matrix(2, 2);
  const Tensor x = sample::matrix(2, 2, false);
  const Tensor place = full({2, 2}, 1000.0, DType::kF64);
  set_grad_destination(w, place);
  (mm(x, w) + mm(w, x)).sum().backward();
  EXPECT_TRUE(w.grad().is_same(place));
  const Tensor reference = sample::matrix(2, 2);
  (mm(x, reference) + mm(reference, x)).sum().backward();
  EXPECT_EQ(elements(place), elements(reference.grad()));
}

TEST(GradDestination, ASumIsNotWrittenToAGradientThatTheCallerHolds) {
  const Tensor x = leaf({1, 2});
  set_grad_destination(x, zeros({2}, DType::kF64));
  const Tensor given = sample::vector({1, 10});
  (x * 2 + x).backward(given);  // the sum passes `given` on to the leaf
  EXPECT_THAT(elements(given), ElementsAre(1, 10));
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 30));
}

TEST(GradDestination, LaterBackwardsAddThere) {
  const Tensor w = sample::matrix(2, 2);
  const Tensor x = sample::matrix(2, 2, false);
  const Tensor place = zeros({2, 2}, DType::kF64);
  set_grad_destination(w, place);
  mm(x, w).sum().backward();
  const std::vector<double> once = elements(place);
  mm(x, w).sum().backward();
  EXPECT_TRUE(w.grad().is_same(place));
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(elements(place)[i], 2 * once[i]);
}

TEST(GradDestination, AnEarlierGradientMovesThere) {
  const Tensor x = leaf({1, 2});
  (x * 2).sum().backward();
  const Tensor place = zeros({2}, DType::kF64);
  set_grad_destination(x, place);
  (x * 3).sum().backward();
  EXPECT_TRUE(x.grad().is_same(place));
  EXPECT_THAT(elements(place), Each(5));
}

TEST(GradDestination, MustMatchTheLeaf) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROWS(set_grad_destination(x, zeros({3}, DType::kF64)), ShapeError,
                "[set_grad_destination] shapes differ: expected [2], got [3].");
  EXPECT_THROWS(set_grad_destination(x, zeros({2}, DType::kF32)), DTypeError,
                "[set_grad_destination] dtypes differ: expected float64, got float32.");
  EXPECT_THROWS(set_grad_destination(x, empty({2}, {DType::kF64, kMeta})), DeviceError,
                "[set_grad_destination] devices differ: expected cpu, got meta.");
  EXPECT_THROWS(set_grad_destination(x * 2, zeros({2}, DType::kF64)), AutogradError,
                "[set_grad_destination] expected a leaf that requires grad, got float64[2]");
  EXPECT_THROWS(set_grad_destination(sample::vector({1}), {}), AutogradError, "requires grad");
  const Tensor place = zeros({2}, DType::kF64);
  set_grad_destination(x, place);
  set_grad_destination(x, {});
  (x * 2).sum().backward();
  EXPECT_FALSE(x.grad().is_same(place));
}

}  // namespace
}  // namespace lockstep
