#include "profile/device_work.h"

#include <gtest/gtest.h>

#include "tests/profile/made_up_profile.h"

namespace lockstep::profile {
namespace {

constexpr int64_t kBegin = 5'000'000;  // of the profile, by the clock of the activities

/// What made_up_profile has, with a kernel that runs on stream 3 from 7 us on and was launched from
/// `begin` to `end` of the thread with this number.
Profile with_launch(int64_t begin, int64_t end, uint64_t thread = 100) {
  Profile profile = made_up_profile();
  profile.spans[3].cause = ProfileSpan::kNone;  // spans are not tied yet
  DeviceActivities activities;
  activities.calls = {{.name = "cuLaunchKernel",
                       .thread = thread,
                       .begin_ns = kBegin + begin,
                       .end_ns = kBegin + end,
                       .number = 9}};
  activities.work = {{.name = "add_f32",
                      .device = 1,
                      .stream = 3,
                      .begin_ns = kBegin + 7'000,
                      .end_ns = kBegin + 7'400,
                      .bytes = 0,
                      .call = 9}};
  activities.lost = 2;
  add_activities(profile, activities, kBegin);
  return profile;
}

TEST(DeviceWork, ALaunchIsInsideTheSpanInWhichItBegan) {
  const Profile profile = with_launch(2'000, 2'500);
  ASSERT_EQ(profile.spans.size(), 6u);
  const ProfileSpan& launch = profile.spans[2];
  EXPECT_EQ(launch.kind, SpanKind::kLaunch);
  EXPECT_EQ(launch.name, "cuLaunchKernel");
  EXPECT_EQ(launch.parent, 1);
  EXPECT_EQ(launch.step, 12);
  EXPECT_EQ(launch.module, "h.0");
  EXPECT_EQ(launch.begin_ns, 2'000);
  EXPECT_EQ(launch.duration_ns, 500);
  EXPECT_EQ(launch.self_ns, 500);
  EXPECT_EQ(profile.spans[1].self_ns, 2'250 - 500);
  // Spans behind it are where they were.
  EXPECT_EQ(profile.spans[3].name, "augment");
  EXPECT_EQ(profile.spans[3].parent, 0);
  EXPECT_EQ(profile.spans[0].self_ns, made_up_profile().spans[0].self_ns);
}

TEST(DeviceWork, ALaunchEndsWithTheSpanThatItIsInside) {
  const Profile profile = with_launch(3'500, 4'500);
  EXPECT_EQ(profile.spans[2].duration_ns, 250);
  EXPECT_EQ(profile.spans[2].self_ns, 250);
  EXPECT_EQ(profile.spans[1].self_ns, 2'250 - 250);
}

TEST(DeviceWork, ALaunchBehindASpanIsInsideTheOneAroundIt) {
  const Profile profile = with_launch(3'750, 3'900);
  EXPECT_EQ(profile.spans[2].kind, SpanKind::kLaunch);
  EXPECT_EQ(profile.spans[2].parent, 0);
  EXPECT_EQ(profile.spans[1].self_ns, 2'250);
}

TEST(DeviceWork, AStreamIsAThreadWithTheKernelsThatRanOnIt) {
  const Profile profile = with_launch(2'000, 2'500);
  ASSERT_EQ(profile.threads.size(), 3u);
  EXPECT_EQ(profile.threads[2].name, "cuda:1 stream 3");
  EXPECT_EQ(profile.threads[2].device, 1);
  EXPECT_EQ(profile.threads[2].stream, 3);
  const ProfileSpan& kernel = profile.spans.back();
  EXPECT_EQ(kernel.kind, SpanKind::kKernel);
  EXPECT_EQ(kernel.thread, 2u);
  EXPECT_EQ(kernel.begin_ns, 7'000);
  EXPECT_EQ(kernel.duration_ns, 400);
  EXPECT_EQ(kernel.self_ns, 400);
  EXPECT_EQ(kernel.sequence, profile.spans[2].sequence);
  EXPECT_EQ(profile.lost_work, 2u);
}

TEST(DeviceWork, AThreadWithoutSpansIsAddedForItsLaunches) {
  const Profile profile = with_launch(2'000, 2'500, 555);
  ASSERT_EQ(profile.threads.size(), 4u);
  EXPECT_EQ(profile.threads[2].id, 555u);
  const ProfileSpan& launch = profile.spans[4];
  EXPECT_EQ(launch.kind, SpanKind::kLaunch);
  EXPECT_EQ(launch.thread, 2u);
  EXPECT_EQ(launch.parent, ProfileSpan::kNone);
}

TEST(DeviceWork, WhatBeganBeforeTheProfileIsLeftOut) {
  Profile profile = made_up_profile();
  DeviceActivities activities;
  activities.calls = {{.name = "cuLaunchKernel", .thread = 100, .begin_ns = 1, .end_ns = 2}};
  activities.work = {{.name = "early", .begin_ns = kBegin - 1, .end_ns = kBegin + 5}};
  add_activities(profile, activities, kBegin);
  EXPECT_EQ(profile.spans.size(), made_up_profile().spans.size());
}

}  // namespace
}  // namespace lockstep::profile
