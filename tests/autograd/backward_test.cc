#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/dispatch/op_counter.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

TEST(Backward, AChainMultipliesItsDerivatives) {
  const Tensor x = leaf({1, 2, 3});
  (x * x * 3).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(6, 12, 18));
}

TEST(Backward, GradientsOfASharedTensorAreSummed) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  (y * y + y + x).sum().backward();  // 4 x^2 + 3 x
  EXPECT_THAT(elements(x.grad()), ElementsAre(11, 19));
}

TEST(Backward, OneTensorGivenTwiceGetsBothGradients) {
  const Tensor x = leaf({3});
  add(x, x).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2));
}

TEST(Backward, BroadcastingIsSummedBack) {
  const Tensor rows = sample::matrix(2, 3);
  const Tensor row = leaf({1, 2, 3});
  const Tensor number = leaf({5});
  (rows * row + number).sum().backward();
  EXPECT_THAT(elements(row.grad()), ElementsAre(0.25 + 1.75, 0.75 + 2.25, 1.25 + 2.75));
  EXPECT_THAT(elements(number.grad()), ElementsAre(6));
  EXPECT_EQ(rows.grad().shape(), "[2, 3]");
}

TEST(Backward, ASecondBackwardAddsToTheGradient) {
  const Tensor x = leaf({1, 2});
  (x * 3).sum().backward();
  const Tensor first = x.grad();
  (x * 4).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(7, 7));
  EXPECT_TRUE(x.grad().is_same(first)) << "added in place";
}

TEST(Backward, AGivenGradientWeighsTheRoot) {
  const Tensor x = leaf({1, 2});
  (x * x).backward(sample::vector({10, 100}));
  EXPECT_THAT(elements(x.grad()), ElementsAre(20, 400));
}

TEST(Backward, SeveralRootsAndARepeatedOneAreSummed) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  const Tensor z = y * 10;
  backward({y, z, y});
  EXPECT_THAT(elements(x.grad()), ElementsAre(4 + 40 + 4));
}

TEST(Backward, EachOfSeveralRootsHasItsOwnGradient) {
  const Tensor x = leaf({1, 2});
  const Tensor first = x * 1, second = x * 10, third = x * 100;
  // The second comes again after the third: nodes are told apart by more than their order.
  backward({first, second, third, second}, {sample::vector({1, 2}), sample::vector({3, 4}),
                                            sample::vector({5, 6}), sample::vector({7, 8})});
  EXPECT_THAT(elements(x.grad()), ElementsAre(1 + 10 * (3 + 7) + 500, 2 + 10 * (4 + 8) + 600));
}

TEST(Backward, ALeafCanBeTheRoot) {
  const Tensor x = leaf({2});
  x.backward();
  x.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2));
}

TEST(Backward, EveryResultOfAnOperatorCarriesItsOwnGradient) {
  const Tensor x = leaf({1, 2});
  const auto [twice, square] = sample::pair(x);
  EXPECT_TRUE(twice.requires_grad());
  EXPECT_TRUE(square.requires_grad());
  (twice + square * 10).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(22, 42));
}

TEST(Backward, AnUnusedResultBringsAnUndefinedGradient) {
  const Tensor x = leaf({1, 2});
  std::get<1>(sample::pair(x)).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 4));
}

TEST(Backward, PartsOfASplitGoBackToTheirPlaces) {
  const Tensor x = leaf({1, 2, 3, 4, 5});
  const std::vector<Tensor> parts = x.split(2);
  (parts[0].sum() * 2 + parts[2].sum() * 7).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 2, 0, 0, 7));
}

TEST(Backward, OneOfSeveralResultsKeepsWhatAllWereMadeFrom) {
  for (const size_t kept : {size_t{0}, size_t{1}, size_t{2}}) {
    const Tensor x = leaf({1, 2, 3, 4, 5});
    const Tensor part = [&] { return x.split(2)[kept]; }();
    part.sum().backward();
    std::vector<double> expected(5, 0.0);
    for (size_t i = 2 * kept; i < std::min<size_t>(5, 2 * kept + 2); ++i) expected[i] = 1;
    EXPECT_EQ(elements(x.grad()), expected) << kept;
  }
}

TEST(Backward, AGraphMayBeFreedByAnotherThread) {
  const Tensor x = leaf({1, 2});
  for (int round = 0; round < 3; ++round) {
    Tensor y = x;
    for (int i = 0; i < 200; ++i) y = y * x;
    std::thread([graph = std::move(y)]() mutable { graph = Tensor(); }).join();
  }
  (x * 3).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 3));
}

TEST(Backward, ViewsPassGradientsToTheirBase) {
  const Tensor x = sample::matrix(2, 3);
  const Tensor y = x.t().select(0, 1).unsqueeze(0) * 2;
  y.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(0, 2, 0, 0, 2, 0));
}

TEST(Backward, IntegerArgumentsTakeNoPart) {
  const Tensor x = leaf({1, 2});
  const Tensor n = tensor_from<int64_t>({2, 3}, {2});
  (x * n).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 3));
}

TEST(Backward, GoesBackThroughACast) {
  const Tensor x = leaf({1, 2});
  const Tensor half = x.to(DType::kF32) * 3;
  EXPECT_EQ(half.dtype(), DType::kF32);
  half.sum().backward();
  EXPECT_EQ(x.grad().dtype(), DType::kF64);
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 3));
}

TEST(Backward, OfTensorsWithoutElements) {
  const Tensor x = leaf({});
  (x * 2).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_EQ(x.grad().numel(), 0);
  x.backward(sample::vector({}));
  EXPECT_EQ(x.grad().numel(), 0);
}

TEST(Backward, RunsWhileRecordingIsOff) {
  const Tensor x = leaf({1, 2});
  const Tensor y = (x * x).sum();
  const NoGradGuard guard;
  y.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 4));
}

TEST(Backward, WhatTheRootDoesNotDependOnIsLeftAlone) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  const Tensor aside = x * y;
  const Tensor root = (x * 2).sum();
  root.backward();
  EXPECT_FALSE(y.grad().defined());
  EXPECT_FALSE(aside.grad_fn()->saved_tensors().empty());
}

TEST(Backward, TwiceWithoutRetainGraphIsAnErrorThatSaysSo) {
  const Tensor x = leaf({1, 2});
  const Tensor y = (x * x).sum();
  y.backward();
  EXPECT_THROWS(y.backward(), AutogradError, "[MulBackward0]", "retain_graph");
}

TEST(Backward, TwiceIsFineWhereNothingWasSaved) {
  const Tensor x = leaf({1, 2});
  const Tensor y = (x + 1).sum();
  y.backward();
  y.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 2));
}

TEST(Backward, RetainGraphKeepsWhatASecondBackwardNeeds) {
  const Tensor x = leaf({1, 2});
  const Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(4, 8));
}

TEST(Backward, ARootOfSeveralElementsNeedsAGradient) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROWS((x * 2).backward(), AutogradError, "[backward]", "[2]", "sum()");
}

TEST(Backward, ARootWithoutHistoryIsAnError) {
  EXPECT_THROWS(sample::vector({1}).backward(), AutogradError, "does not require grad", "grad_fn");
}

TEST(Backward, AGradientOfTheWrongShapeIsAnError) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROWS((x * 2).backward(sample::vector({1, 2, 3})), AutogradError, "[2]", "[3]");
  EXPECT_THROWS(backward({x * 2}, {sample::vector({1, 2}), x}), AutogradError, "expected 1");
}

TEST(Backward, AGradientOfAnotherFloatDtypeIsCast) {
  const Tensor x = leaf({1, 2});
  (x * 2).backward(tensor_from<float>({1, 2}, {2}));
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 4));
}

TEST(Backward, AWrongShapeFromADerivativeNamesItsNode) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROWS(sample::misshapen(x).sum().backward(), AutogradError, "[TestMisshapenBackward0]",
                "expected [2]", "got [7]");
}

TEST(Backward, AMissingGradientNamesItsNode) {
  const Tensor a = leaf({1});
  const Tensor b = leaf({1});
  EXPECT_THROWS(sample::short_of_one(a, b).backward(), AutogradError, "[TestShortOfOneBackward0]",
                "expected 2", "got 1");
  sample::short_of_one(a, sample::vector({1})).backward();  // the second gradient is not needed
  EXPECT_THAT(elements(a.grad()), ElementsAre(1));
}

TEST(Backward, TooManyGradientsNameTheirNode) {
  EXPECT_THROWS(sample::generous(leaf({1})).backward(), AutogradError,
                "[TestGenerousBackward0] returned too many gradients: expected 1, one per tensor "
                "argument, got 3.");
}

TEST(Backward, ARootsGradientMustFit) {
  const Tensor x = leaf({1});
  (x * 2).backward(sample::vector({1, 2, 3}));
  EXPECT_THAT(elements(x.grad()), ElementsAre(12)) << "it is summed to the root's shape";
  EXPECT_THROWS((x * 2).backward(tensor_from<int64_t>({1}, {1})), AutogradError,
                "[backward] a gradient has the wrong dtype: expected float64, got int64.");
  EXPECT_THROWS((x * 2).backward(empty({1}, {DType::kF64, kMeta})), AutogradError,
                "[backward] a gradient is on the wrong device: expected cpu, got meta.");
  const Tensor two = leaf({1, 2}) * 2;
  EXPECT_THROWS(two.backward(sample::vector({1})), AutogradError,
                "[backward] a gradient has the wrong shape: expected [2], got [1].");
  EXPECT_THROWS(grad({two}, TensorList{}), AutogradError,
                "[grad] there is nothing to differentiate with");
  EXPECT_THROWS(backward({}), AutogradError, "[backward] there is nothing to differentiate");
  BackwardOptions options;
  options.inputs = {sample::vector({1})};
  EXPECT_THROWS(backward({two.sum()}, {}, options), AutogradError,
                "[backward] inputs: expected tensors that require grad, got float64[1]");
}

TEST(Backward, TwoGradientsOfATensorAreAddedInPlace) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * sample::vector({3, 4}) + x * sample::vector({5, 6});
  const Tensor one = sample::vector({1, 1});
  const int64_t before = allocator(kCPU).stats().allocations;
  y.backward(one);
  EXPECT_EQ(allocator(kCPU).stats().allocations - before, 2) << "the two products";
  EXPECT_THAT(elements(x.grad()), ElementsAre(8, 10));
  // What someone else holds is not written to.
  const Tensor z = leaf({1, 2});
  const Tensor weight = sample::vector({7, 8});
  const Tensor root = z * 1;
  backward({root, root}, {weight, weight});
  EXPECT_THAT(elements(weight), ElementsAre(7, 8));
  EXPECT_THAT(elements(z.grad()), ElementsAre(14, 16));
}

TEST(Backward, AnExceptionInADerivativeReachesTheCallerAndLeavesAllUsable) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROWS((sample::failing(x * 2) + x * x).sum().backward(), DataError, "derivative failed");
  EXPECT_FALSE(x.grad().defined());
  (x * x).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 4));
}

TEST(Backward, ADerivativeMayRunABackwardOfItsOwn) {
  const Tensor x = leaf({1, 2});
  const Tensor inner = leaf({5});
  sample::inside = [&] {
    const EnableGradGuard recording;
    (inner * inner).backward();
  };
  (sample::calling(x * 2) + x).sum().backward();
  sample::inside = nullptr;
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 3));
  EXPECT_THAT(elements(inner.grad()), ElementsAre(10));
}

TEST(Backward, ANestedBackwardMayUseTheSameNodes) {
  const Tensor x = leaf({1, 2});
  const Tensor shared = x * x;
  const Tensor side = (shared * 3).sum();
  sample::inside = [&] { side.backward({}, true); };
  sample::calling(shared).sum().backward();
  sample::inside = nullptr;
  EXPECT_THAT(elements(x.grad()), ElementsAre(6 + 2, 12 + 4));
}

TEST(Backward, InputsLimitWhatAccumulatesAndWhatRuns) {
  const Tensor x = leaf({1});
  const Tensor y = leaf({2});
  const Tensor root = sample::calling(x) * y;
  sample::calls = 0;
  BackwardOptions options;
  options.inputs = {y};
  backward({root}, {}, options);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_THAT(elements(y.grad()), ElementsAre(1));
  EXPECT_EQ(sample::calls, 0);
}

TEST(Backward, InputsThatAreNoLeavesAccumulateToo) {
  const Tensor x = leaf({1});
  const Tensor a = x * 2;
  const Tensor b = x * 3;
  BackwardOptions options;
  options.inputs = {a, b};
  options.retain_graph = true;
  for (int times : {1, 2}) {
    backward({(a * 5 + b * 7).sum()}, {}, options);
    EXPECT_THAT(elements(a.grad()), ElementsAre(5 * times));
    EXPECT_THAT(elements(b.grad()), ElementsAre(7 * times));
  }
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, ARecordedCallTakesAnyNumberOfTensors) {
  for (const bool stacked : {false, true}) {
    std::vector<Tensor> parts;
    for (int i = 0; i < 200; ++i) {
      parts.push_back(full({2}, static_cast<double>(i)));
      if (i % 3 != 0) parts.back().set_requires_grad();
    }
    const Tensor joined = stacked ? stack(parts) : view(cat(parts), {200, 2});
    const Tensor loss = (joined * joined).sum();
    EXPECT_EQ(grad({loss}, {parts[100]}, {}, {.retain_graph = true})[0][1].item<float>(), 200);
    loss.backward();
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(parts[i].grad().defined(), i % 3 != 0) << i;
      if (i % 3 != 0) {
        EXPECT_EQ(parts[i].grad()[0].item<float>(), 2 * i);
      }
    }
  }
}

TEST(Backward, OnlyALateTensorOfAListMayRequireGrad) {
  std::vector<Tensor> parts(100, ones({1}));
  parts[99] = ones({1});
  parts[99].set_requires_grad();
  cat(parts).sum().backward();
  EXPECT_EQ(parts[99].grad().item<float>(), 1);
}

TEST(Grad, ReturnsGradientsAndLeavesTheLeavesAlone) {
  const Tensor x = leaf({1, 2});
  const Tensor y = leaf({3, 4});
  const std::vector<Tensor> found = grad({(x * y).sum()}, {x, y});
  EXPECT_THAT(elements(found[0]), ElementsAre(3, 4));
  EXPECT_THAT(elements(found[1]), ElementsAre(1, 2));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Grad, WorksForIntermediateTensorsAndStopsThere) {
  const Tensor x = leaf({1, 2});
  const Tensor middle = sample::calling(x);
  sample::calls = 0;
  const std::vector<Tensor> found = grad({(middle * middle).sum()}, {middle});
  EXPECT_THAT(elements(found[0]), ElementsAre(2, 4));
  EXPECT_EQ(sample::calls, 0);
}

TEST(Grad, AnOutputCanBeAnInput) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  const std::vector<Tensor> found = grad({y}, {y, x});
  EXPECT_THAT(elements(found[0]), ElementsAre(1));
  EXPECT_THAT(elements(found[1]), ElementsAre(4));
}

TEST(Grad, AnUnusedInputIsAnErrorUnlessAllowed) {
  const Tensor x = leaf({1});
  const Tensor other = leaf({1});
  EXPECT_THROWS(grad({x * 2}, {x, other}), AutogradError, "input 1", "allow_unused");
  GradOptions options;
  options.allow_unused = true;
  const std::vector<Tensor> found = grad({x * 2}, {x, other}, {}, options);
  EXPECT_THAT(elements(found[0]), ElementsAre(2));
  EXPECT_FALSE(found[1].defined());
}

TEST(Grad, AnInputThatDoesNotRequireGradIsAnError) {
  const Tensor x = leaf({1});
  EXPECT_THROWS(grad({x * 2}, {sample::vector({1})}), AutogradError, "input 0", "require");
}

TEST(Backward, OfSeveralResultsADerivativeOfOneBelongsToTheFirst) {
  const Tensor x = leaf({1, 2});
  const auto [twice, square] = sample::half_pair(x);
  EXPECT_TRUE(twice.requires_grad());
  EXPECT_FALSE(square.requires_grad());
  (twice + square).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 2));
}

TEST(Backward, AddsGradientsIntoTheOneThatMayBeWritten) {
  // The sum's gradient is expanded, exp's is not.
  for (const bool is_expanded_first : {false, true}) {
    const Tensor x = leaf({1, 2});
    const Tensor y = x * 1;
    // The node that was made last runs first.
    const Tensor before = is_expanded_first ? y.exp().sum() : y.sum();
    const Tensor loss = before + (is_expanded_first ? y.sum() : y.exp().sum());
    OpCounter counter;
    {
      const ModeGuard on(counter);
      loss.backward();
    }
    const OpCounter::Counts& counts = counter.counts(Phase::kBackward);
    EXPECT_TRUE(counts.contains("add_.Tensor")) << is_expanded_first;
    EXPECT_FALSE(counts.contains("add.Tensor")) << is_expanded_first;
  }
}

}  // namespace
}  // namespace lockstep
