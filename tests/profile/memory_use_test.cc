#include "profile/memory_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "autograd/autograd.h"
#include "core/memory/caching_allocator.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "profile/profiler.h"
#include "tests/profile/made_up_profile.h"

namespace lockstep::profile {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProfileSpan event(int64_t at, uint64_t address, int64_t bytes, Phase phase, int64_t step = 12) {
  ProfileSpan span;
  span.kind = SpanKind::kMemory;
  span.begin_ns = at;
  span.sequence = address;
  span.bytes = bytes;
  span.phase = phase;
  span.step = step;
  return span;
}

std::vector<int64_t> bytes_of(const std::vector<MemoryMoment>& timeline, MemoryUse use) {
  std::vector<int64_t> bytes;
  for (const MemoryMoment& moment : timeline) {
    bytes.push_back(moment.bytes[static_cast<size_t>(use)]);
  }
  return bytes;
}

TEST(MemoryUse, IsToldByThePhasesOfRequestAndFree) {
  Profile profile = made_up_profile();
  profile.memory = {"cpu", 1000, 1000 - 100 + 8 + 16};
  profile.spans.push_back(event(1, 1, 32, Phase::kForward));
  profile.spans.push_back(event(2, 2, 4, Phase::kForward));
  profile.spans.push_back(event(3, 2, -4, Phase::kForward));
  profile.spans.push_back(event(4, 3, 8, Phase::kBackward));
  profile.spans.push_back(event(5, 1, -32, Phase::kBackward));
  profile.spans.push_back(event(6, 4, 16, Phase::kOptimizer));
  profile.spans.push_back(event(7, 9, -100, Phase::kOptimizer));
  const std::vector<MemoryMoment> timeline = memory_timeline(profile);
  using ::testing::ElementsAre;
  EXPECT_THAT(bytes_of(timeline, MemoryUse::kActivations), ElementsAre(0, 32, 32, 32, 32, 0, 0, 0));
  EXPECT_THAT(bytes_of(timeline, MemoryUse::kTemporary), ElementsAre(0, 0, 4, 0, 0, 0, 0, 0));
  EXPECT_THAT(bytes_of(timeline, MemoryUse::kGradients), ElementsAre(0, 0, 0, 0, 8, 8, 8, 8));
  EXPECT_THAT(bytes_of(timeline, MemoryUse::kOptimizer), ElementsAre(0, 0, 0, 0, 0, 0, 16, 16));
  EXPECT_THAT(bytes_of(timeline, MemoryUse::kBefore),
              ElementsAre(1000, 1000, 1000, 1000, 1000, 1000, 1000, 900));
  EXPECT_EQ(timeline.back().total(), profile.memory->end_bytes);
  EXPECT_THAT(peak_text(profile), HasSubstr("memory on cpu: 0.0 MiB at the peak: 0.0 before"));
}

TEST(MemoryUse, MemoryThatALaterStepFreesIsNotTemporary) {
  Profile profile = made_up_profile();
  profile.memory = {"cpu", 1 << 20, 1 << 20};
  profile.spans.push_back(event(1, 1, 3 << 20, Phase::kForward, 12));
  profile.spans.push_back(event(2, 1, -(3 << 20), Phase::kForward, 13));
  EXPECT_THAT(bytes_of(memory_timeline(profile), MemoryUse::kActivations),
              ::testing::ElementsAre(0, 3 << 20, 0));
  EXPECT_EQ(peak_text(profile),
            "memory on cpu: 4.0 MiB at the peak: 1.0 before, 3.0 activations\n");
}

TEST(MemoryUse, IsNotKnownWhereItWasNotRecorded) {
  EXPECT_THAT(memory_timeline(made_up_profile()), IsEmpty());
  EXPECT_EQ(peak_text(made_up_profile()), "");
}

TEST(MemoryUse, TheSumIsTheAllocatorsFigureAtEveryMoment) {
  const Tensor weight = ones({64, 64}).set_requires_grad();
  Tensor kept;
  std::vector<Profile> profiles;
  Profiler profiler({.schedule = {.wait = 0, .warmup = 0, .active = 2},
                     .limits = {.threads = 4, .spans = 4096, .text = 1u << 20}},
                    [&](Profile profile) { profiles.push_back(std::move(profile)); });
  for (int64_t step = 0; step < 2; ++step) {
    profiler.begin_step(step);
    const Tensor x = ones({32, 64});
    sum(mul(mm(x, weight), 2.0)).backward();
    kept = zeros({100});
  }
  profiler.end();
  const Profile& profile = profiles.at(0);
  const std::vector<MemoryMoment> timeline = memory_timeline(profile);
  ASSERT_GT(timeline.size(), 5u);
  EXPECT_EQ(timeline.front().total(), profile.memory->begin_bytes);
  EXPECT_EQ(timeline.back().total(), profile.memory->end_bytes);
  EXPECT_EQ(profile.memory->end_bytes, caching_allocator(kCPU).stats().allocated);
  EXPECT_GE(timeline.back().bytes[static_cast<size_t>(MemoryUse::kGradients)], 64 * 64 * 4);
}

}  // namespace
}  // namespace lockstep::profile
