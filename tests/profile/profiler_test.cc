#include "profile/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/stream.h"
#include "tests/profile/heap_calls.h"

namespace lockstep::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const SpanLimits kSmall = {.threads = 8, .spans = 4096, .text = 1u << 20};

class ProfilerTest : public ::testing::Test {
 protected:
  ProfilerOptions record_from_step(int64_t first, int64_t steps = 1, SpanLimits limits = kSmall) {
    return {{.wait = first, .warmup = 0, .active = steps}, limits};
  }
  std::function<void(Profile)> keep() {
    return [this](Profile profile) { profiles_.push_back(std::move(profile)); };
  }
  /// What `body` does, as the only step.
  template <class Body>
  const Profile& profile_of(Body body) {
    Profiler profiler(record_from_step(0), keep());
    profiler.begin_step(0);
    body();
    profiler.end();
    return profiles_.back();
  }
  static const ProfileSpan& find(const Profile& profile, const std::string& name) {
    const auto found = std::ranges::find(profile.spans, name, &ProfileSpan::name);
    if (found == profile.spans.end()) throw std::runtime_error("no span " + name);
    return *found;
  }
  static int64_t index_of(const Profile& profile, const ProfileSpan& span) {
    return &span - profile.spans.data();
  }
  static std::vector<std::string> names(const Profile& profile) {
    std::vector<std::string> all;
    for (const ProfileSpan& span : profile.spans) all.push_back(span.name);
    return all;
  }

  std::vector<Profile> profiles_;
};

TEST_F(ProfilerTest, RecordsTheStepsOfItsScheduleAlone) {
  Profiler profiler({{.wait = 1, .warmup = 1, .active = 2, .repeat = 1}, kSmall}, keep());
  for (int64_t step = 10; step < 16; ++step) {
    profiler.begin_step(step);
    (void)ones({step});
  }
  profiler.end();
  ASSERT_THAT(profiles_, SizeIs(1));
  EXPECT_THAT(profiles_[0].steps, ElementsAre(12, 13));
  std::vector<int64_t> sizes;
  for (const ProfileSpan& span : profiles_[0].spans) {
    if (span.name == "ones") sizes.push_back(span.step);
  }
  EXPECT_THAT(sizes, ElementsAre(12, 13));
}

TEST_F(ProfilerTest, GivesAProfileForEachCycle) {
  Profiler profiler({{.wait = 1, .warmup = 0, .active = 1, .repeat = 2}, kSmall}, keep());
  for (int64_t step = 0; step < 8; ++step) profiler.begin_step(step);
  profiler.end();
  ASSERT_THAT(profiles_, SizeIs(2));
  EXPECT_THAT(profiles_[0].steps, ElementsAre(1));
  EXPECT_THAT(profiles_[1].steps, ElementsAre(3));
}

TEST_F(ProfilerTest, TellsOfACycleThatWasCutShort) {
  Profiler profiler(record_from_step(1, 5), keep());
  for (int64_t step = 0; step < 3; ++step) profiler.begin_step(step);
  profiler.end();
  ASSERT_THAT(profiles_, SizeIs(1));
  EXPECT_THAT(profiles_[0].steps, ElementsAre(1, 2));
}

TEST_F(ProfilerTest, RecordsShapesDtypesWorkAndModule) {
  const Tensor a = ones({4, 8}), b = ones({8, 2});
  const Profile& profile = profile_of([&] {
    const ModuleScope module("h.0.mlp");
    (void)mm(a, b);
  });
  const ProfileSpan& span = find(profile, "mm");
  EXPECT_EQ(span.kind, SpanKind::kOperator);
  EXPECT_EQ(span.module, "h.0.mlp");
  EXPECT_EQ(span.flops, 2 * 4 * 8 * 2);
  EXPECT_EQ(span.bytes, 4 * (32 + 16 + 8));
  EXPECT_EQ(span.dtype, DType::kF32);
  ASSERT_THAT(span.arguments, SizeIs(2));
  EXPECT_THAT(span.arguments[0].sizes, ElementsAre(4, 8));
  EXPECT_THAT(span.arguments[1].sizes, ElementsAre(8, 2));
  EXPECT_GT(span.duration_ns, 0);
}

TEST_F(ProfilerTest, ACompositesWorkIsThatOfTheCallsInsideIt) {
  const Tensor x = ones({4, 4});
  const Profile& profile = profile_of([&] { (void)linear(x, x, {}); });
  const ProfileSpan& outer = find(profile, "linear");
  const ProfileSpan& inner = find(profile, "mm");
  EXPECT_EQ(inner.parent, index_of(profile, outer));
  EXPECT_EQ(outer.flops, 0);
  EXPECT_EQ(inner.flops, 128);
  EXPECT_LE(outer.self_ns, outer.duration_ns - inner.duration_ns);
}

TEST_F(ProfilerTest, TiesBackwardToForward) {
  const Tensor x = ones({4, 4}).set_requires_grad();
  const Profile& profile = profile_of([&] {
    Tensor y;
    {
      const ModuleScope module("h.1");
      y = mm(x, x);
    }
    sum(y).backward();
  });
  const ProfileSpan& forward = find(profile, "mm");
  const ProfileSpan& node = find(profile, "MmBackward0");
  EXPECT_EQ(node.kind, SpanKind::kNode);
  EXPECT_EQ(node.phase, Phase::kBackward);
  EXPECT_NE(forward.sequence, 0u);
  EXPECT_EQ(node.sequence, forward.sequence);
  EXPECT_EQ(node.cause, index_of(profile, forward));
  EXPECT_EQ(node.module, "h.1");
  // The products of backward are inside the node, and so in its module.
  int inside = 0;
  for (const ProfileSpan& span : profile.spans) {
    if (span.parent == index_of(profile, node) && span.name.starts_with("mm")) {
      EXPECT_EQ(span.module, "h.1");
      ++inside;
    }
  }
  EXPECT_EQ(inside, 2);
  (void)find(profile, "AccumulateGrad");
}

TEST_F(ProfilerTest, ACallThatRecordsNoNodeHasNoSequence) {
  const Tensor x = ones({4, 4}).set_requires_grad();
  const Tensor y = mul(x, x);
  const Profile& profile = profile_of([&] {
    const NoGradGuard no_grad;
    (void)add(y, y);
  });
  EXPECT_EQ(find(profile, "add.Tensor").sequence, 0u);
}

TEST_F(ProfilerTest, RecordsRangesOfAllThreadsAndOperatorsOfItsOwn) {
  const Profile& profile = profile_of([&] {
    std::thread([] {
      const Range range("loader");
      (void)ones({3});
    }).join();
    const Range range("mine");
    (void)zeros({3});
  });
  EXPECT_EQ(profile.threads.size(), 2u);
  EXPECT_EQ(find(profile, "loader").step, 0);
  EXPECT_EQ(find(profile, "zeros").parent, index_of(profile, find(profile, "mine")));
  EXPECT_THAT(names(profile), ::testing::Not(::testing::Contains("ones")));
}

TEST_F(ProfilerTest, SpansOfOtherThreadsAreOfTheStepInWhichTheyBegan) {
  Profiler profiler(record_from_step(0, 3), keep());
  for (int64_t step = 0; step < 3; ++step) {
    profiler.begin_step(step);
    std::thread([] { const Range range("on a thread of its own"); }).join();
  }
  profiler.end();
  std::vector<int64_t> steps;
  for (const ProfileSpan& span : profiles_.at(0).spans) {
    if (span.name == "on a thread of its own") steps.push_back(span.step);
  }
  EXPECT_THAT(steps, ElementsAre(0, 1, 2));
}

TEST_F(ProfilerTest, SeesTheCallsThatTheEngineMakesOnItsWorkers) {
  const TensorOptions on_host = TensorOptions(Device{DeviceType::kHost, 0});
  const Tensor x = ones({4, 4}, on_host).set_requires_grad();
  const Profile& profile = profile_of([&] {
    sum(mm(x, x)).backward();
    synchronize(x.device());
  });
  const ProfileSpan& node = find(profile, "MmBackward0");
  EXPECT_NE(node.thread, find(profile, "mm").thread);
  const bool has_product = std::ranges::any_of(profile.spans, [&](const ProfileSpan& span) {
    return span.kind == SpanKind::kOperator && span.parent == index_of(profile, node) &&
           span.name.starts_with("mm");
  });
  EXPECT_TRUE(has_product);
  // The work of a queued call is that of its kernel.
  const auto kernel = std::ranges::find_if(profile.spans, [](const ProfileSpan& span) {
    return span.kind == SpanKind::kKernel && span.flops > 0;
  });
  ASSERT_NE(kernel, profile.spans.end());
  EXPECT_EQ(kernel->flops, 128);
  EXPECT_EQ(find(profile, "mm").flops, 0);
}

TEST_F(ProfilerTest, TakesNoMemoryWhileItRecords) {
  const Tensor x = ones({8, 8}), y = ones({8, 8});
  const Tensor out = empty({8, 8});
  Profiler profiler(record_from_step(0), keep());
  profiler.begin_step(0);
  const auto calls_of = [&] {
    const int64_t before = heap_calls();
    {
      const Range range("a name that is too long for the short strings of the library");
      add_out(out, x, y);
    }
    return heap_calls() - before;
  };
  (void)calls_of();
  const int64_t recorded = calls_of();
  profiler.end();
  EXPECT_EQ(recorded, calls_of());
}

TEST_F(ProfilerTest, WhatDoesNotFitIsSaid) {
  Profiler profiler(record_from_step(0, 1, {.threads = 2, .spans = 5, .text = 4096}), keep());
  profiler.begin_step(0);
  for (int i = 0; i < 7; ++i) (void)zeros({1});
  profiler.end();
  EXPECT_THAT(profiles_.at(0).spans, SizeIs(5));
  EXPECT_GE(profiles_[0].lost(), 3u);
  EXPECT_THAT(losses_text(profiles_[0]), ::testing::HasSubstr("spans did not fit the buffers"));
}

TEST_F(ProfilerTest, AStepThatThrowsLeavesAProfileAndNoTrace) {
  const Tensor a = ones({2, 3});
  {
    Profiler profiler(record_from_step(0, 3), keep());
    profiler.begin_step(0);
    const auto step = [&] {
      const Range range("step's part");
      (void)mm(a, a);
    };
    EXPECT_THROW(step(), ShapeError);
    profiler.end();
    ASSERT_THAT(profiles_, SizeIs(1));
    EXPECT_FALSE(find(profiles_[0], "mm").cut);
    EXPECT_FALSE(find(profiles_[0], "step's part").cut);
    EXPECT_EQ(find(profiles_[0], "mm").flops, 0);
  }
  EXPECT_FALSE(is_recording_spans());
  EXPECT_EQ(innermost_observer(), nullptr);
}

TEST_F(ProfilerTest, DroppedInTheMiddleItTellsNothingAndStops) {
  {
    Profiler profiler(record_from_step(0), keep());
    profiler.begin_step(0);
    (void)zeros({1});
  }
  EXPECT_THAT(profiles_, IsEmpty());
  EXPECT_FALSE(is_recording_spans());
  EXPECT_EQ(innermost_observer(), nullptr);
}

TEST_F(ProfilerTest, AnotherOneIsRefused) {
  const Profiler profiler(record_from_step(0), keep());
  EXPECT_THROW(Profiler(record_from_step(0), keep()), Error);
}

}  // namespace
}  // namespace lockstep::profile
