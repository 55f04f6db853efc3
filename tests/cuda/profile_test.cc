// Profiles of a GPU: what its driver tells of kernels and copies, tied to the operators that queued
// them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "autograd/autograd.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/stream.h"
#include "profile/profiler.h"
#include "profile/table.h"
#include "tests/cuda/gpu.h"

namespace lockstep::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;

/// A profile of one step, before which the device has nothing left to do.
Profile profile_of_step(const std::function<void()>& step) {
  std::optional<Profile> result;
  ProfilerOptions options;
  options.schedule = {.wait = 0, .warmup = 1, .active = 1, .repeat = 1};
  options.device = kGpu;
  Profiler profiler(options, [&](Profile profile) { result = std::move(profile); });
  for (int64_t number = 0; number < 2; ++number) {
    current_stream(kGpu).synchronize();
    profiler.begin_step(number);
    step();
  }
  profiler.end();
  return result.value();
}

TEST(GpuProfile, KernelsAreTiedToTheOperatorsThatQueuedThem) {
  const Tensor x = randn({64, 64}, {DType::kF32, kGpu});
  const Profile profile = profile_of_step([&] { (void)x.add(1).tanh(); });
  ASSERT_EQ(profile.no_device_times, "");
  EXPECT_EQ(profile.lost_work, 0u);
  std::vector<std::string> operators;
  for (const ProfileSpan& span : profile.spans) {
    if (span.kind != SpanKind::kKernel) continue;
    EXPECT_EQ(profile.threads[span.thread].device, 0);
    EXPECT_GT(span.duration_ns, 0);
    EXPECT_EQ(span.step, 1);
    ASSERT_NE(span.cause, ProfileSpan::kNone);
    const ProfileSpan& launch = profile.spans[static_cast<size_t>(span.cause)];
    EXPECT_EQ(launch.kind, SpanKind::kLaunch);
    EXPECT_EQ(launch.name, "cuLaunchKernel");
    EXPECT_LE(launch.begin_ns, span.begin_ns);
    ASSERT_NE(launch.parent, ProfileSpan::kNone);
    const ProfileSpan& op = profile.spans[static_cast<size_t>(launch.parent)];
    EXPECT_EQ(op.kind, SpanKind::kOperator);
    EXPECT_GE(op.self_ns, 0);
    operators.push_back(op.name);
  }
  EXPECT_THAT(operators, ElementsAre(HasSubstr("add"), "tanh"));
}

TEST(GpuProfile, SpansStayNestedAndInOrder) {
  const Tensor x = randn({64, 64}, {DType::kF32, kGpu}).set_requires_grad();
  const Profile profile = profile_of_step([&] { (void)grad({x.mul(x).sigmoid().sum()}, {x}); });
  int64_t kernels = 0;
  for (size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfileSpan& span = profile.spans[i];
    kernels += span.kind == SpanKind::kKernel ? 1 : 0;
    if (i > 0 && profile.spans[i - 1].thread == span.thread) {
      EXPECT_GE(span.begin_ns, profile.spans[i - 1].begin_ns);
    }
    if (span.parent == ProfileSpan::kNone) continue;
    const ProfileSpan& parent = profile.spans[static_cast<size_t>(span.parent)];
    EXPECT_LT(span.parent, static_cast<int64_t>(i));
    EXPECT_EQ(parent.thread, span.thread);
    EXPECT_GE(span.begin_ns, parent.begin_ns);
    EXPECT_LE(span.begin_ns + span.duration_ns, parent.begin_ns + parent.duration_ns + 1000);
  }
  EXPECT_THAT(kernels, Gt(3));
}

TEST(GpuProfile, CopiesTellTheirBytes) {
  const Tensor x = randn({1000}, {DType::kF32, kCPU});
  const Profile profile = profile_of_step([&] { (void)x.to(kGpu); });
  int copies = 0;
  for (const ProfileSpan& span : profile.spans) {
    if (span.kind != SpanKind::kKernel || !span.name.starts_with("copy")) continue;
    EXPECT_EQ(span.bytes, 4000);
    ++copies;
  }
  EXPECT_GE(copies, 1);
}

}  // namespace
}  // namespace lockstep::profile
