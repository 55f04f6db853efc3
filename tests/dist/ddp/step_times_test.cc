#include "dist/ddp/step_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "core/tensor/stream.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

TEST(StepTimes, AreThoseOfWhatWasToldInTheOrderOfTheStep) {
  StepTimes times(kCPU);
  times.step_begun(2);
  EXPECT_EQ(times.bucket_count(), 2u);
  EXPECT_EQ(times.gradient_time(0), std::nullopt);
  times.gradient_ready(3);
  std::this_thread::sleep_for(2ms);
  times.gradient_ready(1);
  ASSERT_TRUE(times.gradient_time(3));
  EXPECT_GE(*times.gradient_time(1) - *times.gradient_time(3), 2ms);
  EXPECT_GE(*times.gradient_time(3), times.begun());
  EXPECT_EQ(times.gradient_time(2), std::nullopt);
  EXPECT_EQ(times.gradient_time(4), std::nullopt);
  for (const size_t bucket : {0, 1}) {
    times.bucket_ready(bucket, 100 + static_cast<int64_t>(bucket));
    std::this_thread::sleep_for(2ms);
    times.bucket_launched(bucket);
    times.bucket_under_way(bucket, Work());
    EXPECT_TRUE(times.reduction(bucket).is_completed());
  }
  times.backward_done();
  EXPECT_EQ(times.backward_ended(), times.finish_called());
  std::this_thread::sleep_for(5ms);
  times.all_reduced({});
  EXPECT_GE(times.exposed_seconds(), 0.005);
  EXPECT_LT(times.exposed_seconds(), 60);
  const double all = times.exposed_seconds();
  times.all_reduced(1h);
  EXPECT_LT(times.exposed_seconds(), all - 3000) << "the time elsewhere does not count";
  const std::vector<BucketTimes> buckets = times.buckets();
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].bytes, 100);
  EXPECT_EQ(buckets[1].bytes, 101);
  for (const BucketTimes& each : buckets) {
    EXPECT_GE(each.launched - each.ready, 2ms);
    EXPECT_EQ(each.done, each.launched) << "an empty reduction ends when it is launched";
  }
  EXPECT_LE(buckets[0].launched, buckets[1].ready);
  EXPECT_LE(buckets[1].launched, times.backward_ended());

  times.step_begun(1);
  EXPECT_EQ(times.bucket_count(), 1u);
  EXPECT_EQ(times.gradient_time(3), std::nullopt) << "of the step before";
}

TEST(StepTimes, OnADeviceWhatIsExposedIsWhatComesAfterTheEndOfBackward) {
  const Device device{DeviceType::kHost, 0};
  const OwnedStream stream(device);
  const StreamGuard guard(stream.get());
  const auto exposed = [&](std::chrono::milliseconds before, std::chrono::milliseconds after) {
    StepTimes times(device);
    times.step_begun(1);
    if (before.count() == 0) times.backward_done();
    times.bucket_ready(0, 4);
    stream.get().add_callback([=] { std::this_thread::sleep_for(before + after); });
    times.bucket_launched(0);
    times.bucket_under_way(0, Work());
    if (before.count() != 0) times.backward_done();
    times.all_reduced({});
    return times.exposed_seconds();
  };
  EXPECT_GE(exposed(0ms, 20ms), 0.015);
  EXPECT_LT(exposed(20ms, 0ms), 0.015) << "backward has hidden it";
  EXPECT_GE(exposed(20ms, 0ms), 0);
}

}  // namespace
}  // namespace lockstep::dist
