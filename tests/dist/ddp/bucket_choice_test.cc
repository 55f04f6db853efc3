#include "dist/ddp/bucket_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace lockstep::dist {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr BucketLimits kLargest{.first_bytes = 64 * kMiB, .bytes = 64 * kMiB};

/// Parameters whose gradients become ready in their order.
struct Model {
  std::vector<PlannedParameter> parameters;
  std::vector<uint32_t> order;
  GradientTimes times;

  void add(int64_t bytes, double ready) {
    order.push_back(static_cast<uint32_t>(parameters.size()));
    parameters.push_back({bytes / 4, 4, 0});
    times.ready.push_back(ready);
    times.backward_end = ready;
  }
  BucketLimits choose(const LinkCost& link, const BucketLimits& wanted = {}) const {
    return choose_limits(parameters, order, times, link, wanted);
  }
  BucketPlan plan(const BucketLimits& limits) const {
    return plan_buckets(parameters, order, limits);
  }
  double end(const LinkCost& link, const BucketLimits& limits) const {
    return end_of_sums(plan(limits), parameters, times, link);
  }
};

/// 40 gradients of 1 MiB, evenly spaced over `seconds`.
Model even(double seconds) {
  Model model;
  for (int i = 1; i <= 40; ++i) model.add(kMiB, seconds * i / 40);
  return model;
}

TEST(EndOfSums, IsThatOfTheLastBucketOrOfTheProcessor) {
  const Model model = even(1);
  const LinkCost fast{.latency = 0.02, .per_operation = 0.01, .per_byte = 1e-9};
  EXPECT_DOUBLE_EQ(model.end(fast, kLargest), 1 + 0.01 + 40 * kMiB * 1e-9 + 0.02);
  EXPECT_DOUBLE_EQ(model.end(fast, {kMiB, kMiB}), 1 + 0.01 + kMiB * 1e-9 + 0.02)
      << "the last one's transfer; the others are hidden";
  const LinkCost busy{.cpu_per_operation = 0.01, .cpu_per_byte = 1e-9};
  EXPECT_NEAR(model.end(busy, {kMiB, kMiB}), 1 + 0.4 + 40 * kMiB * 1e-9, 1e-12);
}

TEST(ChooseLimits, ALinkThatOperationsHoldUpGetsOneBucket) {
  EXPECT_EQ(even(0.01).choose({.per_operation = 0.05, .per_byte = 1e-9}), kLargest);
}

TEST(ChooseLimits, OperationsThatCostTheProcessorAreFew) {
  EXPECT_EQ(even(1).choose({.cpu_per_operation = 1e-3}), kLargest);
}

TEST(ChooseLimits, AFastLinkUnderASlowBackwardGetsSmallOnes) {
  // Only the last bucket is exposed: it has one gradient, after 1 + 19 x 2 others.
  const BucketLimits limits = even(1).choose({.per_operation = 1e-5, .per_byte = 1e-9});
  EXPECT_EQ(limits, (BucketLimits{.first_bytes = kMiB, .bytes = 2 * kMiB}));
}

TEST(ChooseLimits, ALinkThatIsTooSlowStartsEarly) {
  // 40 transfers of 0.1 s during a backward of 1 s. The first gradient goes alone, since the link
  // is busy from then on. Four more are ready when it is free again; larger buckets would wait.
  const LinkCost slow{.per_operation = 0.001, .per_byte = 1e-7};
  EXPECT_EQ(even(1).choose(slow), (BucketLimits{.first_bytes = kMiB, .bytes = 4 * kMiB}));
}

TEST(ChooseLimits, AGiantParameterGoesAloneAndTheOthersAsTheyWould) {
  Model model;
  model.add(100 * kMiB, 0);
  for (int i = 1; i <= 10; ++i) model.add(64 << 10, 0.1 * i);
  const LinkCost link{.per_operation = 1e-3, .per_byte = 1e-9};
  const BucketLimits limits = model.choose(link);
  EXPECT_EQ(limits.bytes, 64 << 10);
  const BucketPlan plan = model.plan(limits);
  EXPECT_EQ(plan.buckets.size(), 11u);
  EXPECT_THAT(plan.buckets[0].parameters, testing::ElementsAre(0));
}

TEST(ChooseLimits, WhatChangesNothingIsTakenLarge) {
  // The largest parameter comes last, so it alone is exposed, whatever the bucket sizes.
  Model model;
  for (int i = 1; i <= 10; ++i) model.add(64 << 10, 0.05 * i);
  model.add(100 * kMiB, 1);
  EXPECT_EQ(model.choose({.per_operation = 1e-3, .per_byte = 1e-9}), kLargest);
}

TEST(ChooseLimits, GradientsThatComeAllAtOnceGoAtOnce) {
  Model model;
  for (int i = 0; i < 20; ++i) model.add(kMiB, 0.5);
  EXPECT_EQ(model.choose({.per_operation = 1e-4, .per_byte = 1e-8}), kLargest);
}

TEST(ChooseLimits, WhatIsGivenStays) {
  const LinkCost link{.per_operation = 1e-5, .per_byte = 1e-9};
  EXPECT_EQ(even(1).choose(link, {.first_bytes = 0, .bytes = 3 * kMiB}).bytes, 3 * kMiB);
  EXPECT_EQ(even(1).choose(link, {.first_bytes = 12345, .bytes = 0}).first_bytes, 12345);
  const BucketLimits both{.first_bytes = 777, .bytes = 5};
  EXPECT_EQ(even(1).choose(link, both), both);
}

TEST(ChooseLimits, OfNothingTheyAreTheLargest) { EXPECT_EQ(Model().choose({}), kLargest); }

Model any_model() {
  Model model;
  double now = 0;
  const int count = *rc::gen::inRange(1, 40);
  for (int i = 0; i < count; ++i) {
    now += *rc::gen::inRange(0, 20'000) * 1e-6;
    model.add(4 * *rc::gen::oneOf(rc::gen::inRange(1, 5000), rc::gen::inRange(1, 3'000'000)), now);
    model.parameters.back().arena = i > 0 ? *rc::gen::inRange(0, 2) : 0;
  }
  return model;
}

LinkCost any_link() {
  const auto up_to = [](double most) { return *rc::gen::inRange(0, 1000) * most / 1000; };
  return {.latency = up_to(0.01),
          .per_operation = up_to(0.005),
          .per_byte = up_to(1e-8),
          .cpu_per_operation = up_to(0.001),
          .cpu_per_byte = up_to(1e-9)};
}

RC_GTEST_PROP(ChooseLimits, AreNeverWorseThanTheUsualOnes, ()) {
  const Model model = any_model();
  const LinkCost link = any_link();
  BucketLimits wanted;
  if (*rc::gen::inRange(0, 3) == 0) wanted.first_bytes = *rc::gen::inRange(1, 10'000'000);
  if (*rc::gen::inRange(0, 3) == 0) wanted.bytes = *rc::gen::inRange(1, 10'000'000);
  const BucketLimits limits = model.choose(link, wanted);
  const BucketPlan plan = model.plan(limits);
  RC_ASSERT(model.end(link, limits) <= model.end(link, or_usual(wanted)));
  RC_ASSERT(model.end(link, limits) >= model.times.backward_end);
  RC_ASSERT((wanted.first_bytes == 0 || limits.first_bytes == wanted.first_bytes));
  RC_ASSERT((wanted.bytes == 0 || limits.bytes == wanted.bytes));
  RC_ASSERT(model.choose(link, wanted) == limits);
  size_t placed = 0;
  for (const Bucket& each : plan.buckets) placed += each.parameters.size();
  RC_ASSERT(placed == model.parameters.size());
}

TEST(ChooseWorthwhileLimits, KeepTheUsualOnesForWhatMayBeNoise) {
  const Model model = even(1);
  const auto choose = [&](const LinkCost& link, const BucketLimits& wanted = {}) {
    return choose_worthwhile_limits(model.parameters, model.order, model.times, link, wanted);
  };
  // Of the 21 ms that the CPU needs to start 21 operations, 20 ms can be saved; at 5 ms each, 100
  // ms of 105 ms.
  const LinkCost little{.cpu_per_operation = 1e-3};
  EXPECT_EQ(model.choose(little), kLargest);
  EXPECT_EQ(choose(little), kUsualLimits);
  EXPECT_EQ(choose({.cpu_per_operation = 5e-3}), kLargest);
  EXPECT_EQ(choose(little, {.first_bytes = 0, .bytes = 3 * kMiB}),
            (BucketLimits{.first_bytes = kUsualLimits.first_bytes, .bytes = 3 * kMiB}));
}

RC_GTEST_PROP(ChooseWorthwhileLimits, AreTheUsualOnesOrClearlyBetter, ()) {
  const Model model = any_model();
  const LinkCost link = any_link();
  const BucketLimits limits =
      choose_worthwhile_limits(model.parameters, model.order, model.times, link);
  const double usual = model.end(link, kUsualLimits);
  RC_ASSERT((limits == kUsualLimits || model.end(link, limits) < (1 - kWorthwhile) * usual));
  RC_ASSERT(model.end(link, model.choose(link)) >=
            (limits == kUsualLimits ? (1 - kWorthwhile) * usual : 0));
}

TEST(DescribeChoice, SaysWhatPeopleAskFor) {
  BucketChoice choice{.limits = {},
                      .link = {.latency = 3e-4, .per_operation = 1e-4, .per_byte = 1 / 118e6},
                      .buckets = 7,
                      .first_bytes = kMiB / 2,
                      .largest_bytes = 5 * kMiB / 2};
  EXPECT_EQ(
      describe(choice),
      "7 buckets of up to 2.5 MiB, first 0.5, for a link of 118 MB/s and 400 µs an operation");
  choice.link = {.per_byte = 1 / 12.5e9};
  EXPECT_THAT(describe(choice), testing::EndsWith("for a link of 12.5 GB/s"));
  choice.link = {.latency = 2e-3};
  EXPECT_THAT(describe(choice), testing::EndsWith("for a link of 2 ms an operation"));
  choice.link = {};
  EXPECT_THAT(describe(choice), testing::EndsWith("first 0.5")) << "nothing was measured";
}

}  // namespace
}  // namespace lockstep::dist
