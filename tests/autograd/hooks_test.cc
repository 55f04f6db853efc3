#include "autograd/hooks.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using Numbers = std::vector<double>;

/// Returns a tensor hook that multiplies the gradient by `factor`.
auto times(double factor) {
  return [factor](const Tensor& grad) { return grad * factor; };
}
/// Returns a tensor hook that only logs its call.
auto note(std::vector<std::string>& log, std::string what) {
  return [&log, what](const Tensor&) {
    log.push_back(what);
    return Tensor();
  };
}

TEST(TensorHook, SeesAndReplacesTheGradientOfAComputedTensor) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  Numbers seen;
  y.register_hook([&](const Tensor& grad) {
    seen = elements(grad);
    return grad * 10;
  });
  (y * y).sum().backward();
  EXPECT_EQ(seen, (Numbers{6, 12}));
  EXPECT_EQ(elements(x.grad()), (Numbers{180, 360}));
}

TEST(TensorHook, OfALeafRunsBeforeItsGradientIsAccumulated) {
  const Tensor x = leaf({1, 2});
  x.register_hook(times(2));
  x.sum().backward();
  x.sum().backward();
  EXPECT_EQ(elements(x.grad()), (Numbers{4, 4}));
}

TEST(TensorHook, RunsOnceWithTheSumOfAllContributions) {
  const Tensor x = leaf({1});
  int calls = 0;
  x.register_hook([&](const Tensor& grad) {
    ++calls;
    EXPECT_EQ(elements(grad), Numbers{5});
    return Tensor();
  });
  (x * 2 + x * 3).sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST(TensorHook, SeveralRunInTheOrderInWhichTheyWereAdded) {
  const Tensor x = leaf({1});
  x.register_hook([](const Tensor& grad) { return grad + 1; });
  x.register_hook(times(10));
  x.sum().backward();
  EXPECT_EQ(elements(x.grad()), Numbers{20});
}

TEST(TensorHook, IsGoneAfterRemoveAndStaysWithoutTheHandle) {
  const Tensor x = leaf({1});
  HookHandle removed = x.register_hook(times(100));
  { const HookHandle dropped = x.register_hook(times(2)); }
  removed.remove();
  removed.remove();
  x.sum().backward();
  EXPECT_EQ(elements(x.grad()), Numbers{2});
}

TEST(TensorHook, MayRemoveItselfAndOthersWhileItRuns) {
  const Tensor x = leaf({1});
  int calls = 0;
  HookHandle first, second;
  first = x.register_hook([&](const Tensor&) {
    ++calls;
    first.remove();
    second.remove();
    return Tensor();
  });
  second = x.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  x.sum().backward();
  EXPECT_EQ(calls, 2) << "both were there when the run began";
  x.sum().backward();
  EXPECT_EQ(calls, 2);
}

TEST(TensorHook, IsSeenByGradToo) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  y.register_hook(times(5));
  EXPECT_EQ(elements(grad({y.sum()}, {y})[0]), Numbers{5});
  EXPECT_EQ(elements(grad({(x * 2).sum()}, {x})[0]), Numbers{2});
}

TEST(TensorHook, AddedBeforeAnInPlaceChangeStaysWithTheOldValue) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  Numbers old_gradient, new_gradient;
  y.register_hook([&](const Tensor& grad) {
    old_gradient = elements(grad);
    return Tensor();
  });
  y.mul_(x.detach() * 0 + 7);
  y.register_hook([&](const Tensor& grad) {
    new_gradient = elements(grad);
    return Tensor();
  });
  y.sum().backward();
  EXPECT_EQ(new_gradient, (Numbers{1, 1}));
  EXPECT_EQ(old_gradient, (Numbers{7, 7}));
}

TEST(TensorHook, UnderCreateGraphItsWorkIsRecorded) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;
  y.register_hook([&](const Tensor& grad) { return grad * x; });
  GradOptions options;
  options.create_graph = true;
  const Tensor first = grad({y.sum()}, {x}, {}, options)[0];  // 2 x * x
  EXPECT_EQ(elements(first), Numbers{18});
  EXPECT_EQ(elements(grad({first.sum()}, {x})[0]), Numbers{12});
}

TEST(TensorHook, AResultOfAnotherShapeOrDtypeIsAnErrorThatNamesTheNode) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  HookHandle hook = y.register_hook([](const Tensor& grad) { return grad.sum(); });
  EXPECT_THROWS(y.sum().backward(), AutogradError, "[MulBackward1]", "tensor hook", "[2]", "[]");
  hook.remove();
  const Tensor z = x * 2;
  z.register_hook([](const Tensor& grad) { return grad.to(DType::kF32); });
  EXPECT_THROWS(z.sum().backward(), AutogradError, "tensor hook", "float64", "float32");
}

TEST(TensorHook, NeedsATensorThatRequiresGrad) {
  EXPECT_THROWS(sample::vector({1}).register_hook(times(2)), AutogradError, "[register_hook]",
                "requires grad");
  EXPECT_THROWS(sample::vector({1}).retain_grad(), AutogradError, "[retain_grad]");
}

TEST(TensorHook, WhatItThrowsReachesTheCallerAndTheGraphIsFreed) {
  std::weak_ptr<int> alive;
  {
    const Tensor x = leaf({1});
    const auto token = std::make_shared<int>(1);
    alive = token;
    const Tensor y = x * 2;
    y.register_hook([token](const Tensor&) -> Tensor { throw DataError("from a hook"); });
    EXPECT_THROWS(y.sum().backward(), DataError, "from a hook");
    EXPECT_FALSE(x.grad().defined());
    (x * 3).sum().backward();
    EXPECT_EQ(elements(x.grad()), Numbers{3});
  }
  EXPECT_TRUE(alive.expired());
}

TEST(RetainGrad, KeepsTheGradientOfAComputedTensor) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  EXPECT_FALSE(y.retains_grad());
  y.retain_grad();
  y.retain_grad();
  EXPECT_TRUE(y.retains_grad());
  (y * 3).sum().backward();
  EXPECT_EQ(elements(y.grad()), (Numbers{3, 3}));
  x.retain_grad();
  EXPECT_FALSE(x.retains_grad()) << "a leaf's gradient is kept anyway";
}

TEST(RetainGrad, SeesWhatTensorHooksMadeOfItWheneverTheyWereAdded) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  y.retain_grad();
  y.register_hook(times(4));
  y.sum().backward();
  EXPECT_EQ(elements(y.grad()), Numbers{4});
}

TEST(RetainGrad, GradientsOfSeveralBackwardsAreSummed) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  y.retain_grad();
  const Tensor z = (y * 3).sum();
  z.backward({}, /*retain_graph=*/true);
  const Tensor first = y.grad();
  z.backward();
  EXPECT_EQ(elements(y.grad()), Numbers{6});
  EXPECT_EQ(elements(first), Numbers{3}) << "a new tensor";
  const Tensor w = x * 2;
  w.retain_grad();
  Tensor seen;
  w.register_hook([&](const Tensor& grad) {
    seen = grad;
    return Tensor();
  });
  (w * 3).sum().backward();
  EXPECT_NE(w.grad().data(), seen.data()) << "a copy, which later nodes do not change";
}

TEST(RetainGrad, FollowsAnInPlaceChange) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  y.retain_grad();
  y.mul_(sample::vector({5}));
  y.sum().backward();
  EXPECT_EQ(elements(y.grad()), Numbers{1});
  EXPECT_EQ(elements(x.grad()), Numbers{10});
}

TEST(RetainGrad, ATensorThatIsGoneIsForgotten) {
  const Tensor x = leaf({1});
  Tensor z;
  {
    const Tensor y = x * 2;
    y.retain_grad();
    z = y * 3;
  }
  z.sum().backward();
  EXPECT_EQ(elements(x.grad()), Numbers{6});
}

TEST(PostAccumulateGradHook, SeesTheLeafWithItsNewGradient) {
  const Tensor x = leaf({1, 2});
  std::vector<Numbers> seen;
  register_post_accumulate_grad_hook(x, [&](const Tensor& it) {
    EXPECT_TRUE(it.is_same(x));
    seen.push_back(elements(it.grad()));
  });
  (x * 2).sum().backward();
  (x * 2).sum().backward();
  EXPECT_EQ(seen, (std::vector<Numbers>{{2, 2}, {4, 4}}));
}

TEST(PostAccumulateGradHook, MayStepAndClearTheGradient) {
  const Tensor x = leaf({1, 2});
  register_post_accumulate_grad_hook(x, [](const Tensor& it) {
    const NoGradGuard guard;
    it.sub_(it.grad());
    it.set_grad({});
  });
  (x * 2).sum().backward();
  EXPECT_EQ(elements(x), (Numbers{-1, 0}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(PostAccumulateGradHook, IsForLeavesOnly) {
  const Tensor x = leaf({1});
  EXPECT_THROWS(register_post_accumulate_grad_hook(x * 2, [](const Tensor&) {}), AutogradError,
                "leaf", "MulBackward1");
}

TEST(PostAccumulateGradHook, DoesNotRunForGrad) {
  const Tensor x = leaf({1});
  int calls = 0;
  register_post_accumulate_grad_hook(x, [&](const Tensor&) { ++calls; });
  grad({x.sum()}, {x});
  EXPECT_EQ(calls, 0);
}

/// Calls a function while the tensor that owns it is destroyed: after the release of its last
/// reference, before its autograd metadata goes.
struct CallWhenDestroyed final : BatchMeta {
  explicit CallWhenDestroyed(std::function<void()> f) : function(std::move(f)) {}
  ~CallWhenDestroyed() override { function(); }
  std::function<void()> function;
};

TEST(PostAccumulateGradHook, IsNotCalledForALeafThatIsBeingDestroyed) {
  Tensor x = leaf({1, 2});
  int calls = 0;
  bool destroyed = false;
  register_post_accumulate_grad_hook(x, [&](const Tensor&) { ++calls; });
  const Tensor y = sum(x + 1);
  x.impl()->batch = std::make_unique<CallWhenDestroyed>([&] {
    y.backward();
    destroyed = true;
  });
  x = Tensor();
  EXPECT_TRUE(destroyed);
  EXPECT_EQ(calls, 0);
}

TEST(NodeHooks, PreAndPostHooksSeeWhatGoesInAndComesOut) {
  const Tensor x = leaf({2});
  const Tensor y = x * 3;
  register_prehook(*y.grad_fn(), [](std::span<Tensor> grads) { grads[0] = grads[0] * 10; });
  Numbers in, out;
  register_posthook(*y.grad_fn(), [&](std::span<Tensor> inputs, std::span<const Tensor> outputs) {
    out = elements(inputs[0]);
    in = elements(outputs[0]);
    inputs[0] = inputs[0] + 1;
  });
  y.sum().backward();
  EXPECT_EQ(in, Numbers{10});
  EXPECT_EQ(out, Numbers{30});
  EXPECT_EQ(elements(x.grad()), Numbers{31});
}

TEST(NodeHooks, RunInTheDocumentedOrder) {
  std::vector<std::string> log;
  const Tensor x = leaf({2});
  const Tensor y = x * 3;
  register_posthook(*y.grad_fn(),
                    [&](std::span<Tensor>, std::span<const Tensor>) { log.push_back("post"); });
  register_prehook(*y.grad_fn(), [&](std::span<Tensor>) { log.push_back("pre"); });
  y.register_hook(note(log, "tensor"));
  x.register_hook(note(log, "leaf"));
  register_post_accumulate_grad_hook(x, [&](const Tensor&) { log.push_back("accumulated"); });
  y.sum().backward();
  EXPECT_EQ(log, (std::vector<std::string>{"tensor", "pre", "post", "leaf", "accumulated"}));
}

TEST(NodeHooks, APreHookOfANodeThatIsOnlyCapturedDoesNotRun) {
  const Tensor x = leaf({2});
  const Tensor y = x * 3;
  int calls = 0;
  register_prehook(*y.grad_fn(), [&](std::span<Tensor>) { ++calls; });
  EXPECT_EQ(elements(grad({(y * 2).sum()}, {y})[0]), Numbers{2});
  EXPECT_EQ(calls, 0);
}

TEST(NodeHooks, APreHookMayNotChangeTheShape) {
  const Tensor y = leaf({1, 2}) * 3;
  register_prehook(*y.grad_fn(), [](std::span<Tensor> grads) { grads[0] = grads[0].sum(); });
  EXPECT_THROWS(y.sum().backward(), AutogradError, "pre- hook", "[MulBackward1]");
}

TEST(NodeHooks, HooksThatChangeTheKindOfAGradientAreNamed) {
  const Tensor y = leaf({1, 2}) * 3;
  register_prehook(*y.grad_fn(),
                   [](std::span<Tensor> grads) { grads[0] = grads[0].to(DType::kF32); });
  EXPECT_THROWS(y.sum().backward(), AutogradError,
                "[MulBackward1] a pre- hook gave another kind of gradient than it took: expected "
                "float64[2]",
                "got float32[2]");
  const Tensor z = leaf({1, 2}) * 3;
  z.register_hook([](const Tensor&) { return empty({2}, {DType::kF64, kMeta}); });
  EXPECT_THROWS(z.sum().backward(), AutogradError, "[MulBackward1] a tensor hook gave", "meta");
}

TEST(NodeHooks, APreHookMayTakeAGradientAway) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  register_prehook(*y.grad_fn(), [](std::span<Tensor> grads) { grads[0] = Tensor(); });
  int calls = 0;
  register_posthook(*y.grad_fn(), [&](std::span<Tensor> inputs, std::span<const Tensor> outputs) {
    ++calls;
    EXPECT_EQ(outputs.size(), 1u);
    EXPECT_FALSE(outputs[0].defined());
    for (const Tensor& input : inputs) EXPECT_FALSE(input.defined());
  });
  y.sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(x.grad().defined());
}

TEST(MultiGradHook, RunsOnceWhenAllThatTheBackwardReachesIsThere) {
  const Tensor a = leaf({1}), b = leaf({2}), c = leaf({3});
  int calls = 0;
  std::vector<bool> defined;
  register_multi_grad_hook({a, b, c}, [&](std::span<const Tensor> grads) {
    ++calls;
    defined.clear();
    for (const Tensor& grad : grads) defined.push_back(grad.defined());
  });
  (a * b).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(defined, (std::vector<bool>{true, true, false}));
  (a * b * c).sum().backward();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(defined, (std::vector<bool>{true, true, true}));
}

TEST(MultiGradHook, InAnyModeTheFirstGradientCallsIt) {
  const Tensor a = leaf({1}), b = leaf({2});
  int calls = 0;
  std::vector<HookHandle> handles = register_multi_grad_hook(
      {a, b},
      [&](std::span<const Tensor> grads) {
        ++calls;
        EXPECT_NE(grads[0].defined(), grads[1].defined());
      },
      MultiGradMode::kAny);
  (a * b).sum().backward();
  EXPECT_EQ(calls, 1);
  (a * b).sum().backward();
  EXPECT_EQ(calls, 2) << "each backward calls it";
  for (HookHandle& handle : handles) handle.remove();
  (a * b).sum().backward();
  EXPECT_EQ(calls, 2);
}

TEST(QueuedCallback, RunsAfterAllNodesAndMayQueueMore) {
  std::vector<std::string> log;
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  y.register_hook([&](const Tensor&) {
    queue_callback([&] {
      log.push_back("callback");
      EXPECT_TRUE(x.grad().defined());
      queue_callback([&] { log.push_back("another"); });
    });
    log.push_back("hook");
    return Tensor();
  });
  y.sum().backward();
  EXPECT_EQ(log, (std::vector<std::string>{"hook", "callback", "another"}));
  EXPECT_THROWS(queue_callback([] {}), AutogradError, "[queue_callback]", "in no backward");
}

TEST(QueuedCallback, BelongsToTheInnermostBackward) {
  std::vector<std::string> log;
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  y.register_hook([&](const Tensor&) {
    const EnableGradGuard recording;
    const Tensor inner = leaf({1});
    const Tensor z = inner * 2;
    z.register_hook([&](const Tensor&) {
      queue_callback([&] { log.push_back("inner"); });
      return Tensor();
    });
    z.sum().backward();
    log.push_back("outer goes on");
    return Tensor();
  });
  y.sum().backward();
  EXPECT_EQ(log, (std::vector<std::string>{"inner", "outer goes on"}));
}

TEST(WillEngineExecuteNode, KnowsWhatTheRunningBackwardReaches) {
  const Tensor a = leaf({1}), b = leaf({2});
  const Tensor left = a * 2, right = b * 2;
  const Tensor sum = left + right;
  bool will_left = false, will_right = true;
  sum.register_hook([&](const Tensor&) {
    will_left = will_engine_execute_node(*left.grad_fn());
    will_right = will_engine_execute_node(*right.grad_fn());
    return Tensor();
  });
  BackwardOptions options;
  options.inputs = {a};
  backward({sum.sum()}, {}, options);
  EXPECT_TRUE(will_left);
  EXPECT_FALSE(will_right);
  EXPECT_THROWS(will_engine_execute_node(*left.grad_fn()), AutogradError, "in no backward");
}

}  // namespace
}  // namespace lockstep
