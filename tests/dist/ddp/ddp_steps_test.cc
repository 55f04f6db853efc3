// Which gradients are summed over the ranks, and when: no_sync, skipped and failed backwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/hooks.h"
#include "core/base/error.h"
#include "dist/ddp/ddp.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/small_model.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

TEST(DdpSteps, NoSyncOverTheLastBackwardIsFoundBeforeTheGradientsAreLostOrUsed) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    for (int step = 0; step < 2; ++step) {
      expect_error<AutogradError>([&] { (void)ddp.gradients(); }, "got none since zero_grad()");
      {
        const auto no_sync = ddp.no_sync();
        model.loss(0).backward();
        model.loss(1).backward();
      }
      expect_error<AutogradError>([&] { (void)ddp.gradients(); }, "got 2 under no_sync()");
      expect_error<AutogradError>([&] { ddp.zero_grad(); },
                                  "those of 2 backward(s) under no_sync()");
      if (step == 0) {
        model.loss(2).backward();  // sums the gradients of all three backwards
        EXPECT_EQ(ddp.gradients().size(), 2u);
        ddp.zero_grad();
      } else {
        ddp.discard_grad();
        EXPECT_FALSE(model.first.grad().defined());
      }
    }
  });
}

TEST(DdpSteps, ABackwardUnderNoSyncBehindOneThatWasSummedLeavesNoGradientsToUse) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    model.loss(0).backward();
    EXPECT_EQ(ddp.gradients().size(), 2u);
    {
      const auto no_sync = ddp.no_sync();
      model.loss(1).backward();
    }
    expect_error<AutogradError>([&] { (void)ddp.gradients(); }, "got 1 under no_sync() after it");
    ddp.discard_grad();
  });
}

TEST(DdpSteps, NoSyncGuardsNest) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    {
      const auto outer = ddp.no_sync();
      { const auto inner = ddp.no_sync(); }
      model.loss(static_cast<uint32_t>(group.rank())).backward();
    }
    const std::vector<float> own = numbers(model.first.grad());
    const SmallModel alone;
    alone.loss(static_cast<uint32_t>(group.rank())).backward();
    EXPECT_EQ(own, numbers(alone.first.grad()));
    ddp.discard_grad();
  });
}

TEST(DdpSteps, ABackwardGoesOnAsItBeganWhenNoSyncEndsInsideOfIt) {
  std::vector<std::vector<float>> sums(2);
  all_ranks(2, [&](ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    const SmallModel model;
    Ddp ddp(model, group, {.buckets = {.first_bytes = 1, .bytes = 1}, .average = false});
    model.loss(9).backward();
    ddp.zero_grad();
    std::optional<Ddp::NoSync> no_sync(std::in_place, ddp);
    // Runs between the gradient of `second` and that of `first`.
    HookHandle hook = register_hook(model.first, [&](const Tensor&) {
      no_sync.reset();
      return Tensor();
    });
    model.loss(static_cast<uint32_t>(rank)).backward();
    hook.remove();
    expect_error<AutogradError>([&] { (void)ddp.gradients(); }, "got 1 under no_sync()");
    model.loss(static_cast<uint32_t>(rank) + 2).backward();
    sums[rank] = numbers(ddp.gradients()[0]);
    ddp.zero_grad();

    const SmallModel other;
    Ddp at_once(other, group, {.average = false});
    (other.loss(static_cast<uint32_t>(rank)) + other.loss(static_cast<uint32_t>(rank) + 2))
        .backward();
    const std::vector<float> expected = numbers(other.first.grad());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(sums[rank][i], expected[i], 1e-5);
  });
  EXPECT_EQ(sums[0], sums[1]);
}

TEST(DdpSteps, ABackwardThatOneRankSkippedIsAnErrorOfTheOthers) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    for (uint32_t step = 0; step < 3; ++step) {
      ddp.zero_grad();
      const bool skips = group.rank() == 1 && step == 1;
      if (!skips) model.loss(step).backward();
      // gradients() reports the skipped step at once; reading `grad` directly would not.
      if (skips) expect_error<AutogradError>([&] { (void)ddp.gradients(); }, "got none since");
    }
  });
  ASSERT_TRUE(errors[0]);
  expect_error<PeerLostError>([&] { std::rethrow_exception(errors[0]); }, "rank 1");
  EXPECT_FALSE(errors[1]);
}

TEST(DdpSteps, WhatGradAsksForIsNoBackwardOfAStep) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model, plain;
    Ddp ddp(model, group, {.static_graph = true});
    Ddp other(plain, group);
    for (uint32_t step = 0; step < 3; ++step) {
      const auto sample = 2 * step + static_cast<uint32_t>(group.rank());
      const std::vector<Tensor> asked = {model.first};
      EXPECT_EQ(grad(std::vector<Tensor>{model.loss(sample)}, asked).size(), 1u);
      EXPECT_FALSE(model.first.grad().defined());
      model.loss(sample).backward();
      plain.loss(sample).backward();
      EXPECT_EQ(numbers(ddp.gradients()[0]), numbers(other.gradients()[0]));
      ddp.zero_grad();
      other.zero_grad();
    }
  });
}

TEST(DdpSteps, SumsAreNotSummedOnceMore) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, {.average = false});
    model.loss(0).backward();
    for (const Tensor& each : {model.first, model.second}) each.set_grad({});
    model.loss(0).backward();  // starts from undefined gradients
    model.loss(0).backward();
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("[ddp] this backward would add to sums over the ranks"));
}

TEST(DdpSteps, ABackwardAfterOneThatFailedNeedsZeroGrad) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    // Fails before any bucket is launched, so no other rank waits.
    const Tensor hidden = tanh(mm(random_matrix(9, 2, 6), model.first));
    const HookHandle hook = register_hook(
        hidden, [](const Tensor&) -> Tensor { throw std::runtime_error("a hook failed"); });
    EXPECT_THROW(sum(mm(hidden, model.second)).backward(), std::runtime_error);
    expect_error<AutogradError>([&] { (void)ddp.gradients(); }, "got one that failed");
    expect_error<AutogradError>([&] { model.loss(0).backward(); }, "expected zero_grad() after it");
    ddp.zero_grad();
    model.loss(0).backward();
    EXPECT_EQ(ddp.gradients().size(), 2u);
  });
}

}  // namespace
}  // namespace lockstep::dist
