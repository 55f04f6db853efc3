// Activation checkpointing: less memory, the same bits.

#include "autograd/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/function.h"
#include "autograd/transforms.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/dispatch/mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/allocator.h"
#include "core/tensor/generator.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

int64_t allocated() { return allocator(kCPU).stats().allocated; }

/// Saves the argument of sin and the result of exp, then both factors.
Tensor block(const Tensor& x) { return sin(x) * x.exp(); }

/// `block` with a counter of its calls.
struct Counted {
  int* calls;
  Tensor operator()(const Tensor& x) const {
    ++*calls;
    return block(x);
  }
};

TEST(Checkpoint, GradientsHaveTheBitsOfAPlainCall) {
  const Tensor x = leaf({0.1, 0.7, -2}), y = leaf({0.1, 0.7, -2});
  block(block(x)).sum().backward();
  checkpoint(block, checkpoint(block, y)).sum().backward();
  EXPECT_EQ(elements(x.grad()), elements(y.grad()));
}

TEST(Checkpoint, TheFunctionRunsOnceMore) {
  int calls = 0;
  const Tensor x = leaf({1});
  const Tensor y = checkpoint(Counted{&calls}, x);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(is_recomputing());
  y.backward();
  EXPECT_EQ(calls, 2);
}

TEST(Checkpoint, WithoutRecordingItIsJustACall) {
  int calls = 0;
  const NoGradGuard guard;
  EXPECT_FALSE(checkpoint(Counted{&calls}, leaf({1})).requires_grad());
  EXPECT_EQ(calls, 1);
}

TEST(Checkpoint, TakesListsAndPlainValuesAndReturnsAnything) {
  const Tensor a = leaf({2}), b = leaf({3}), c = leaf({5});
  const auto function = [](const Tensor& first, double scale, const std::vector<Tensor>& rest,
                           const Tensor& absent) {
    EXPECT_FALSE(absent.defined());
    return std::pair(first * rest[0] * scale, rest[0] * rest[1]);
  };
  const auto [x, y] = checkpoint(function, a, 10.0, std::vector<Tensor>{b, c}, Tensor());
  (x + y).backward();
  EXPECT_THAT(elements(a.grad()), ElementsAre(30));
  EXPECT_THAT(elements(b.grad()), ElementsAre(25));
  EXPECT_THAT(elements(c.grad()), ElementsAre(3));
}

TEST(Checkpoint, CapturedParametersGetTheirGradients) {
  const Tensor x = leaf({2}), w = leaf({3});
  checkpoint([w](const Tensor& input) { return (input * w).exp(); }, x * 1).log().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(3));
  EXPECT_THAT(elements(w.grad()), ElementsAre(2));
}

// Memory ---------------------------------------------------------------------------------------

constexpr int64_t kBytes = 8 * 4096;

Tensor chain(Tensor x) {
  for (int i = 0; i < 8; ++i) x = x.exp().log();  // saves 16 tensors
  return x;
}

TEST(Checkpoint, BetweenForwardAndBackwardOnlyTheInputsLive) {
  const Tensor x = ones({4096}, DType::kF64).set_requires_grad();
  const int64_t before = allocated();
  {
    Tensor y = x * 1;
    for (int i = 0; i < 4; ++i) y = checkpoint(chain, y);
    EXPECT_LE(allocated() - before, 5 * kBytes + 4096);
    y.sum().backward();
    EXPECT_LE(allocated() - before, 3 * kBytes + 4096);  // y and the gradient
  }
  EXPECT_LE(allocated() - before, kBytes + 4096);
}

TEST(Checkpoint, ThePeakIsTheInputsAndOneBlock) {
  const Tensor x = ones({4096}, DType::kF64).set_requires_grad();
  const int64_t before = allocated();
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = checkpoint(chain, y);
  allocator(kCPU).reset_peak();
  y.sum().backward();
  // 8 inputs, the 16 tensors that one block saves, and gradients in flight.
  EXPECT_LE(allocator(kCPU).stats().peak_allocated - before, (8 + 16 + 5) * kBytes);
}

TEST(Checkpoint, NothingIsLeftWhenTheGraphIsFreedUnused) {
  const int64_t before = allocated();
  {
    const Tensor x = leaf({1, 2, 3});
    const Tensor y = checkpoint([](const Tensor& a) { return checkpoint(block, a * 2); }, x);
    EXPECT_GT(allocated(), before);
  }
  EXPECT_EQ(allocated(), before);
}

TEST(Checkpoint, RecomputedTensorsThatNobodyAsksForAreFreedWithTheBackward) {
  const Tensor x = ones({4096}, DType::kF64).set_requires_grad();
  const Tensor w = ones({4096}, DType::kF64).set_requires_grad();
  const Tensor y = checkpoint([w](const Tensor& a) { return (a.exp() * w).exp() * w; }, x).sum();
  const int64_t before = allocated();
  grad({y}, {w}, {}, {.retain_graph = true});  // needs no tensor saved by exp(x)
  EXPECT_EQ(allocated(), before);
}

// Early stop -----------------------------------------------------------------------------------

struct Traced {
  std::vector<int>* trace;
  Tensor operator()(const Tensor& x) const {
    trace->push_back(1);
    const Tensor y = x.exp();  // saved by exp
    trace->push_back(2);
    const Tensor z = y.neg();  // nothing is saved from here on
    trace->push_back(3);
    return z;
  }
};

TEST(Checkpoint, RecomputationStopsWithTheLastTensorNeeded) {
  std::vector<int> trace;
  const Tensor x = leaf({1});
  const Tensor y = checkpoint(Traced{&trace}, x);
  trace.clear();
  y.backward();
  EXPECT_THAT(trace, ElementsAre(1));
  EXPECT_DOUBLE_EQ(x.grad().item<double>(), -std::exp(1.0));
}

TEST(Checkpoint, WithoutEarlyStopItRunsToTheEnd) {
  std::vector<int> trace;
  const Tensor y = checkpoint({.early_stop = false}, Traced{&trace}, leaf({1}));
  trace.clear();
  y.backward();
  EXPECT_THAT(trace, ElementsAre(1, 2, 3));
}

// Repeated backward ----------------------------------------------------------------------------

TEST(Checkpoint, AKeptGraphRunsTwice) {
  int calls = 0;
  const Tensor x = leaf({1, -2}), plain = leaf({1, -2});
  const Tensor y = checkpoint(Counted{&calls}, x).sum();
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  EXPECT_EQ(calls, 3);
  const Tensor z = block(plain).sum();
  z.backward({}, /*retain_graph=*/true);
  z.backward();
  EXPECT_EQ(elements(x.grad()), elements(plain.grad()));
  EXPECT_THROWS(y.backward(), AutogradError, "retain_graph");
}

TEST(Checkpoint, SecondDerivativesAreThoseOfAPlainCall) {
  const auto second = [](auto&& call) {
    const Tensor x = leaf({0.3, -1});
    const Tensor first = grad({call(x).sum()}, {x}, {}, {.create_graph = true})[0];
    return elements(grad({(first * first).sum()}, {x})[0]);
  };
  EXPECT_EQ(second([](const Tensor& x) { return checkpoint(block, x); }), second(&block));
  EXPECT_EQ(second([](const Tensor& x) { return checkpoint(block, x * 3); }),
            second([](const Tensor& x) { return block(x * 3); }));
}

TEST(Checkpoint, NestedCallsAreComputedLevelByLevel) {
  int outer = 0, inner = 0;
  const auto nested = [&](const Tensor& x) {
    ++outer;
    const Tensor middle = checkpoint(Counted{&inner}, x.tanh());
    return checkpoint(Counted{&inner}, middle) * x;
  };
  const Tensor x = leaf({0.5, 2}), plain = leaf({0.5, 2});
  const Tensor y = checkpoint(nested, x * 1);
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(inner, 2);
  y.sum().backward();
  EXPECT_EQ(outer, 2);
  (block(block((plain * 1).tanh())) * (plain * 1)).sum().backward();
  EXPECT_THAT(elements(x.grad()), testing::Pointwise(testing::DoubleEq(), elements(plain.grad())));
}

TEST(Checkpoint, ThreeLevelsGiveTheSameBits) {
  const auto plain = [](const Tensor& x) { return block(block(block(x))); };
  const auto nested = [](const Tensor& x) {
    return checkpoint(
        [](const Tensor& a) {
          return checkpoint([](const Tensor& b) { return checkpoint(block, checkpoint(block, b)); },
                            checkpoint(block, a));
        },
        x);
  };
  const Tensor x = leaf({0.2, -0.4}), y = leaf({0.2, -0.4});
  plain(x).sum().backward();
  nested(y).sum().backward();
  EXPECT_EQ(elements(x.grad()), elements(y.grad()));
}

TEST(Checkpoint, ABackwardInsideTheFunctionIsAllowed) {
  // A gradient penalty: the squared gradient is part of the result.
  const auto penalised = [](const Tensor& x) {
    const Tensor y = block(x);
    const Tensor slope = grad({y.sum()}, {x}, {}, {.create_graph = true})[0];
    return (y + slope * slope).sum();
  };
  const Tensor x = leaf({0.2, -0.4}), y = leaf({0.2, -0.4});
  penalised(x * 1).backward();
  checkpoint(penalised, y * 1).backward();
  EXPECT_EQ(elements(x.grad()), elements(y.grad()));
}

TEST(Checkpoint, ThreadsMayRunOneGraphAtOnce) {
  const Tensor x = leaf({1, 2});
  const Tensor y = checkpoint(block, checkpoint(block, x * 1)).sum();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int step = 0; step < 10; ++step) y.backward({}, /*retain_graph=*/true);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Tensor once = leaf({1, 2});
  block(block(once * 1)).sum().backward();
  EXPECT_NEAR(elements(x.grad())[1], 30 * elements(once.grad())[1],
              1e-12 * std::abs(elements(x.grad())[1]));
}

// State ----------------------------------------------------------------------------------------

TEST(Checkpoint, DropoutDrawsTheSameAgain) {
  const auto train = [](bool with) {
    manual_seed(7);
    const Tensor x = ones({64}, DType::kF64).set_requires_grad();
    const auto drop = [](const Tensor& a) { return dropout(a.exp(), 0.5, true) * a; };
    const Tensor y = with ? checkpoint(drop, x) : drop(x);
    const Tensor z = dropout(y, 0.5, true);
    z.sum().backward();
    const Tensor after = rand({4});
    return std::tuple(elements(z), elements(x.grad()), elements(after.to(DType::kF64)));
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(Checkpoint, UnderVmapEachSampleIsRecomputedByItself) {
  const Tensor x = sample::matrix(3, 2), plain = sample::matrix(3, 2);
  const auto weighted = [](const Tensor& a) { return sin(a) * sum(exp(a)); };
  vmap([&](const Tensor& a) { return checkpoint(weighted, a); })(x).sum().backward();
  vmap(weighted)(plain).sum().backward();
  EXPECT_EQ(elements(x.grad()), elements(plain.grad()));
}

TEST(Checkpoint, UnderTwoVmapsEachElementIsRecomputedByItself) {
  const Tensor x = sample::matrix(3, 2), plain = sample::matrix(3, 2);
  const auto waves = [](const Tensor& a) { return sin(a) * exp(a); };
  const auto kept = [&](const Tensor& a) { return checkpoint(waves, a); };
  vmap([&](const Tensor& row) { return vmap(kept)(row); })(x).sum().backward();
  waves(plain).sum().backward();
  EXPECT_EQ(elements(x.grad()), elements(plain.grad()));
}

/// Counts the calls of sin.
struct CountedSines : DispatchMode {
  int calls = 0;
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    calls += op.name() == "sin";
    pass_on(op, keys, stack);
  }
};

TEST(Checkpoint, RecomputesUnderTheModesOfBackward) {
  const Tensor x = leaf({1, 2});
  CountedSines around_backward;
  const Tensor y = checkpoint(block, x);
  {
    const ModeGuard on(around_backward);
    y.sum().backward();
  }
  EXPECT_EQ(around_backward.calls, 1) << "the recomputation";

  CountedSines around_forward;
  Tensor z;
  {
    const ModeGuard on(around_forward);
    z = checkpoint(block, x);
  }
  EXPECT_EQ(around_forward.calls, 1);
  z.sum().backward();
  EXPECT_EQ(around_forward.calls, 1) << "its guard is gone";
}

/// Calls `of_sine` in the place of the first sin.
struct InsteadOfASine : FunctionMode {
  std::function<Tensor(const Tensor&)> of_sine;
  void call(const Operator& op, Stack& stack) override {
    if (op.name() != "sin" || !of_sine) return op.call_boxed(stack);
    stack.results().push_back(std::exchange(of_sine, {})(stack.arguments()[0].tensor()));
  }
};

TEST(Checkpoint, OfAModesOwnCallIsRecomputedUnderTheModesOfBackward) {
  const Tensor x = leaf({1, 2});
  InsteadOfASine around_forward;
  around_forward.of_sine = [](const Tensor& a) { return checkpoint(block, a); };
  Tensor y;
  {
    const ModeGuard on(around_forward);
    y = sin(x);  // a mode is off while it handles a call
  }
  InsteadOfASine around_backward;
  bool was_called = false;
  around_backward.of_sine = [&](const Tensor& a) {
    was_called = true;
    return sin(a);
  };
  const ModeGuard on(around_backward);
  y.sum().backward();
  EXPECT_TRUE(was_called) << "by the recomputation";
}

TEST(Checkpoint, RandomStateMayBeLeftAlone) {
  manual_seed(7);
  const Tensor x = ones({64}, DType::kF64).set_requires_grad();
  const auto noisy = [](const Tensor& a) { return a * rand({64}, DType::kF64); };
  const Tensor y = checkpoint({.preserve_rng_state = false}, noisy, x);
  manual_seed(9);
  y.sum().backward();
  manual_seed(9);
  const Tensor drawn = rand({64}, DType::kF64);
  EXPECT_EQ(elements(x.grad()), elements(drawn)) << "recomputation draws from the state it finds";
  EXPECT_NE(elements(x.grad()), elements(y));
}

TEST(Checkpoint, RecomputationRunsUnderForwardsState) {
  std::vector<bool> grad_modes, casts, recomputing;
  std::vector<Device> devices;
  const auto look = [&](const Tensor& x) {
    grad_modes.push_back(is_grad_enabled());
    casts.push_back(is_autocast_enabled(DeviceType::kCPU));
    devices.push_back(default_device());
    recomputing.push_back(is_recomputing());
    return x.exp();
  };
  const Tensor x = leaf({1});
  Tensor y;
  {
    const AutocastGuard autocast(DeviceType::kCPU);
    const DefaultDeviceGuard on_meta(kMeta);
    y = checkpoint(look, x);
  }
  y.backward();
  EXPECT_THAT(grad_modes, ElementsAre(true, true));
  EXPECT_THAT(casts, ElementsAre(true, true));
  EXPECT_THAT(devices, ElementsAre(kMeta, kMeta));
  EXPECT_THAT(recomputing, ElementsAre(false, true));
  EXPECT_FALSE(is_autocast_enabled(DeviceType::kCPU));
  EXPECT_EQ(default_device(), kCPU);
}

TEST(Checkpoint, UnderAutocastGradientsHaveTheSameBits) {
  const auto gradient = [](bool with) {
    manual_seed(1);
    const Tensor x = randn({8, 8}), w = randn({8, 8}).set_requires_grad();
    x.set_requires_grad();
    const auto two = [w](const Tensor& a) { return mm(mm(a, w).tanh(), w); };
    const AutocastGuard autocast(DeviceType::kCPU);
    const Tensor y = with ? checkpoint(two, x) : two(x);
    y.to(DType::kF32).sum().backward();
    return std::pair(elements(x.grad().to(DType::kF64)), elements(w.grad().to(DType::kF64)));
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(Checkpoint, MayBeInsideVmap) {
  const Tensor x = sample::matrix(2, 3), plain = sample::matrix(2, 3);
  const Tensor w = sample::vector({1, 2, 3});
  const auto product = [w](const Tensor& a) { return block(a) * w; };
  vmap([&](const Tensor& a) { return checkpoint(product, a); })(x).sum().backward();
  vmap(product)(plain).sum().backward();
  EXPECT_EQ(elements(x.grad()), elements(plain.grad()));

  const auto inside = [&](const Tensor& a) { return checkpoint(product, a).sum(); };
  EXPECT_EQ(elements(vmap(grad(inside))(x.detach())), elements(plain.grad()));
}

// Functions ------------------------------------------------------------------------------------

struct UnpacksTwice : Function<UnpacksTwice> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    const Tensor y = x * x;
    ctx.save_for_backward({x, y});
    return y;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    // Unpacks twice; the second time must not recompute.
    EXPECT_EQ(ctx.saved_tensors().size(), 2u);
    return {grad * ctx.saved_tensors()[0] * 2};
  }
};

TEST(Checkpoint, WorksThroughFunctions) {
  int calls = 0;
  const int64_t before = allocated();
  {
    const Tensor x = leaf({3});
    const auto squares = [&](const Tensor& a) {
      ++calls;
      return UnpacksTwice::apply(UnpacksTwice::apply(a.exp()));
    };
    checkpoint(squares, x * 1).log().backward();
    EXPECT_EQ(calls, 2);
    EXPECT_NEAR(x.grad().item<double>(), 4, 1e-12);
  }
  EXPECT_EQ(allocated(), before) << "recomputation that stops in a Function leaves nothing behind";
}

// Faults ---------------------------------------------------------------------------------------

TEST(Checkpoint, AnotherShapeTheSecondTimeIsAnError) {
  int calls = 0;
  const auto fickle = [&](const Tensor& x) {
    return (++calls == 1 ? x : x.slice(0, 0, 1)).exp().sum();
  };
  EXPECT_THROWS(checkpoint(fickle, leaf({1, 2})).backward(), AutogradError, "[checkpoint]",
                "expected float64[2] on cpu as the 1. tensor", "got float64[1]");
  calls = 0;
  const auto unchecked = checkpoint({.determinism_check = false}, fickle, leaf({1, 2}));
  EXPECT_THROWS(unchecked.backward(), AutogradError, "another tensor");
}

TEST(Checkpoint, FewerTensorsTheSecondTimeIsAnError) {
  int calls = 0;
  const auto fickle = [&](const Tensor& x) { return ++calls == 1 ? x.exp().exp() : x.exp(); };
  EXPECT_THROWS(checkpoint(fickle, leaf({1})).backward(), AutogradError, "[checkpoint]",
                "expected it to save 2", "got 1");
}

TEST(Checkpoint, MoreTensorsAreAnErrorWithoutEarlyStop) {
  int calls = 0;
  const auto fickle = [&](const Tensor& x) { return ++calls == 1 ? x.exp() : x.exp().exp(); };
  EXPECT_THROWS(checkpoint({.early_stop = false}, fickle, leaf({1})).backward(), AutogradError,
                "expected it to save 1", "got 2");
}

TEST(Checkpoint, AnInputChangedInPlaceIsNoticed) {
  const Tensor x = leaf({1}) * 1;
  const Tensor y = checkpoint(block, x);
  x.add_(sample::vector({1}));
  EXPECT_THROWS(y.backward(), AutogradError, "[checkpoint]", "changed in place");
}

TEST(Checkpoint, ATensorThatTheFunctionChangesAfterUseIsTakenBeforeTheChange) {
  const auto changes = [](const Tensor& x) {
    const Tensor y = x.exp();
    y.mul_(sample::vector({2}));
    return y.exp();
  };
  const Tensor x = leaf({1});
  checkpoint(changes, x).backward();
  const double inner = 2 * std::exp(1.0);
  EXPECT_NEAR(x.grad().item<double>(), inner * std::exp(inner), 1e-9);
  const Tensor y = checkpoint({.early_stop = false}, changes, x);
  EXPECT_THROWS(y.backward(), AutogradError, "[checkpoint]", "changed in place");
}

TEST(Checkpoint, WhatTheFunctionThrowsComesOutOfBackward) {
  int calls = 0;
  const int64_t before = allocated();
  {
    const auto fails = [&](const Tensor& x) {
      if (++calls == 2) throw DataError("[sample] the second time.");
      return block(x);
    };
    const Tensor y = checkpoint(fails, leaf({1}));
    EXPECT_THROWS(y.backward(), DataError, "second time");
    EXPECT_FALSE(is_recomputing());
    y.backward();  // the third run succeeds
  }
  EXPECT_EQ(allocated(), before);
}

TEST(Checkpoint, LongChainsAreFreedWithoutRecursion) {
  Tensor y = leaf({1});
  for (int i = 0; i < 20'000; ++i) y = checkpoint([](const Tensor& x) { return x * x; }, y);
  y.backward();
}

}  // namespace
}  // namespace lockstep
