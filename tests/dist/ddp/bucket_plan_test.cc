#include "dist/ddp/bucket_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;

std::vector<PlannedParameter> of_sizes(std::initializer_list<int64_t> elements) {
  std::vector<PlannedParameter> parameters;
  for (const int64_t each : elements) parameters.push_back({each, 4, 0});
  return parameters;
}

TEST(BucketPlan, ParametersLieInTheGivenOrder) {
  const auto parameters = of_sizes({10, 5000, 20});
  const BucketPlan plan = plan_buckets(parameters, std::vector<uint32_t>{2, 0, 1}, kUsualLimits);
  EXPECT_THAT(plan.offsets, ElementsAre(32, 48, 0));
  EXPECT_THAT(plan.arena_elements, ElementsAre(5056));
  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_THAT(plan.buckets[0].parameters, ElementsAre(2, 0, 1));
}

TEST(BucketPlan, TheFirstBucketIsSmallAndNoneGrowsBeyondItsLimit) {
  const auto parameters = of_sizes({4096, 4096, 4096, 4096, 4096});
  const BucketPlan plan = plan_buckets(parameters, std::vector<uint32_t>{4, 3, 2, 1, 0},
                                       {.first_bytes = 16384, .bytes = 36000});
  ASSERT_EQ(plan.buckets.size(), 3u);
  EXPECT_THAT(plan.buckets[0].parameters, ElementsAre(4));
  EXPECT_THAT(plan.buckets[1].parameters, ElementsAre(3, 2));
  EXPECT_THAT(plan.buckets[2].parameters, ElementsAre(1, 0));
  EXPECT_THAT(plan.bucket_of, ElementsAre(2, 2, 1, 1, 0));
}

TEST(BucketPlan, GapsCountForTheLimit) {
  // Each takes a whole cache line in the arena.
  const auto parameters = of_sizes({10, 10, 10, 10});
  const BucketPlan plan = plan_buckets(parameters, std::vector<uint32_t>{0, 1, 2, 3},
                                       {.first_bytes = 64, .bytes = 128});
  ASSERT_EQ(plan.buckets.size(), 3u);
  for (const Bucket& each : plan.buckets) EXPECT_LE(bucket_bytes(each, parameters), 128);
  EXPECT_EQ(bucket_bytes(plan.buckets[0], parameters), 64);
}

TEST(BucketPlan, ManySmallParametersTakeLittleMoreThanTheirGradients) {
  const std::vector<PlannedParameter> parameters(12'000, {.elements = 256 + 1});
  const auto order = reverse_order(parameters.size());
  const BucketPlan plan = plan_buckets(parameters, order, kUsualLimits);
  EXPECT_LT(plan.arena_elements[0], 12'000 * (256 + 1 + 64 / 4));
}

TEST(BucketPlan, AFirstSizeThatIsNotGivenIsNoLargerThanTheOthers) {
  EXPECT_EQ(or_usual({.first_bytes = 0, .bytes = 1000}),
            (BucketLimits{.first_bytes = 1000, .bytes = 1000}));
  EXPECT_EQ(or_usual({.first_bytes = 5000, .bytes = 1000}),
            (BucketLimits{.first_bytes = 5000, .bytes = 1000}));
  EXPECT_EQ(or_usual({}), kUsualLimits);
  EXPECT_EQ(or_usual({}, DeviceType::kCUDA), kUsualGpuLimits);
}

TEST(BucketPlan, OnAGpuTheUsualLimitsMakeFewBucketsOfGpt2) {
  std::vector<int64_t> sizes = {50257 * 768, 1024 * 768};
  for (int layer = 0; layer < 12; ++layer) {
    for (const int64_t each : {768, 768, 768 * 2304, 2304, 768 * 768, 768, 768, 768, 768 * 3072,
                               3072, 3072 * 768, 768}) {
      sizes.push_back(each);
    }
  }
  sizes.insert(sizes.end(), {768, 768});
  std::vector<PlannedParameter> parameters;
  for (const int64_t each : sizes) parameters.push_back({.elements = each});
  const auto order = reverse_order(parameters.size());
  EXPECT_LE(plan_buckets(parameters, order, kUsualGpuLimits).buckets.size(), 20u);
}

TEST(BucketPlan, AParameterLargerThanTheLimitHasABucketOfItsOwn) {
  const auto parameters = of_sizes({10, 100'000, 10});
  const BucketPlan plan = plan_buckets(parameters, std::vector<uint32_t>{0, 1, 2},
                                       {.first_bytes = 1000, .bytes = 1000});
  ASSERT_EQ(plan.buckets.size(), 3u);
  EXPECT_THAT(plan.buckets[1].parameters, ElementsAre(1));
}

TEST(BucketPlan, ArenasFillSideBySideAndBucketsComeAsTheyAreComplete) {
  std::vector<PlannedParameter> parameters = {{10, 4, 0}, {10, 2, 1}, {10, 4, 0}, {10, 2, 1}};
  const BucketPlan plan = plan_buckets(parameters, std::vector<uint32_t>{1, 0, 2, 3}, kUsualLimits);
  ASSERT_EQ(plan.buckets.size(), 2u);
  EXPECT_EQ(plan.buckets[0].arena, 0);
  EXPECT_THAT(plan.buckets[0].parameters, ElementsAre(0, 2));
  EXPECT_THAT(plan.buckets[1].parameters, ElementsAre(1, 3));
}

TEST(BucketPlan, NoParametersNoBuckets) {
  EXPECT_TRUE(plan_buckets({}, {}, kUsualLimits).buckets.empty());
}

TEST(BucketPlan, LimitsMustBePositive) {
  expect_error<DistError>([] { plan_buckets({}, {}, {.first_bytes = 0, .bytes = 1}); },
                          "[buckets] expected limits of at least one byte, got 0");
}

/// Tests 10,000 models of up to 40 parameters in a few arenas.
TEST(BucketPlan, EveryParameterIsInOneBucketWhateverTheModel) {
  std::mt19937 random(7);
  for (int model = 0; model < 10'000; ++model) {
    std::vector<PlannedParameter> parameters(random() % 40);
    const int arenas = static_cast<int>(random() % 3) + 1;
    for (PlannedParameter& each : parameters) {
      each.elements = random() % 4 == 0 ? static_cast<int64_t>(random() % 20'000)
                                        : static_cast<int64_t>(random() % 600);
      each.arena = std::abs(static_cast<int>(random()) % arenas);
    }
    // Gives each arena at least one parameter, as arenas are numbered without gaps.
    for (int arena = 0; arena < arenas && static_cast<size_t>(arena) < parameters.size(); ++arena) {
      parameters[static_cast<size_t>(arena)].arena = arena;
    }
    for (PlannedParameter& each : parameters) each.element_bytes = int64_t{2} << each.arena;
    std::vector<uint32_t> order = reverse_order(parameters.size());
    std::ranges::shuffle(order, random);
    const BucketLimits limits{.first_bytes = static_cast<int64_t>(random() % 5000) + 1,
                              .bytes = static_cast<int64_t>(random() % 50'000) + 1};
    const BucketPlan plan = plan_buckets(parameters, order, limits);

    std::vector<int> times(parameters.size());
    std::vector<int64_t> ends(plan.arena_elements.size());
    size_t last_complete = 0;
    for (size_t b = 0; b < plan.buckets.size(); ++b) {
      const Bucket& bucket = plan.buckets[b];
      int64_t bytes = 0;
      int64_t at = bucket.first;
      ASSERT_EQ(bucket.first * parameters[bucket.parameters[0]].element_bytes % 64, 0);
      for (const uint32_t each : bucket.parameters) {
        ++times[each];
        bytes += parameters[each].elements * parameters[each].element_bytes;
        ASSERT_EQ(parameters[each].arena, bucket.arena);
        ASSERT_EQ(plan.bucket_of[each], b);
        ASSERT_EQ(plan.offsets[each], at);
        at += parameters[each].elements;
        while (at * parameters[each].element_bytes % 64 != 0) ++at;
      }
      ASSERT_EQ(bucket.end, at);
      ASSERT_TRUE(bucket.parameters.size() == 1 ||
                  bytes <= std::max(limits.bytes, limits.first_bytes));
      int64_t& end = ends[static_cast<size_t>(bucket.arena)];
      ASSERT_EQ(bucket.first, end) << "buckets of an arena follow each other";
      end = bucket.end;
      const auto complete =
          static_cast<size_t>(std::ranges::find(order, bucket.parameters.back()) - order.begin());
      ASSERT_TRUE(b == 0 || complete > last_complete);
      last_complete = complete;
    }
    ASSERT_THAT(times, testing::Each(1));
    ASSERT_EQ(ends, plan.arena_elements);
    ASSERT_EQ(plan, plan_buckets(parameters, order, limits)) << "the same on every rank";
  }
}

}  // namespace
}  // namespace lockstep::dist
