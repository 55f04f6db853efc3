#include "dist/ddp/link_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

/// The times that an exact measurement of such a link would give.
LinkTimes times_of(const LinkCost& cost) {
  LinkTimes times{
      .small_bytes = 16 << 10, .large_bytes = 1 << 20, .small_count = 16, .large_count = 4};
  const auto together = [&](int64_t bytes, int count) {
    return cost.latency + count * cost.seconds(bytes);
  };
  times.one_small = together(times.small_bytes, 1);
  times.small = together(times.small_bytes, times.small_count);
  times.large = together(times.large_bytes, times.large_count);
  times.small_cpu = times.small_count * cost.cpu(times.small_bytes);
  times.large_cpu = times.large_count * cost.cpu(times.large_bytes);
  return times;
}

void expect_near(const LinkCost& cost, const LinkCost& expected) {
  EXPECT_NEAR(cost.latency, expected.latency, 1e-9);
  EXPECT_NEAR(cost.per_operation, expected.per_operation, 1e-9);
  EXPECT_NEAR(cost.per_byte, expected.per_byte, 1e-15);
  EXPECT_NEAR(cost.cpu_per_operation, expected.cpu_per_operation, 1e-9);
  EXPECT_NEAR(cost.cpu_per_byte, expected.cpu_per_byte, 1e-15);
}

TEST(LinkCost, IsFoundFromWhatReductionsTake) {
  const LinkCost gigabit{.latency = 4e-4,
                         .per_operation = 3e-5,
                         .per_byte = 1 / 118e6,
                         .cpu_per_operation = 2e-5,
                         .cpu_per_byte = 1e-9};
  expect_near(link_cost(times_of(gigabit)), gigabit);
  const LinkCost far{.latency = 0.05, .per_operation = 0, .per_byte = 1e-10};
  expect_near(link_cost(times_of(far)), far);
}

TEST(LinkCost, WhatOneTakesAloneIsNotCountedForAllThatFollow) {
  // The first operation takes 20 ms, each one after it 1 ms.
  LinkTimes times = times_of({.latency = 0.019, .per_operation = 0.001});
  EXPECT_NEAR(link_cost(times).latency, 0.019, 1e-9);
  EXPECT_NEAR(link_cost(times).per_operation, 0.001, 1e-9);
}

RC_GTEST_PROP(LinkCost, NothingIsNegativeWhateverWasMeasured, ()) {
  const auto seconds = [] { return *rc::gen::inRange(0, 1'000'000) * 1e-6; };
  LinkTimes times = times_of({});
  for (double* each :
       {&times.one_small, &times.small, &times.large, &times.small_cpu, &times.large_cpu}) {
    *each = seconds();
  }
  const LinkCost cost = link_cost(times);
  RC_ASSERT(std::min({cost.latency, cost.per_operation, cost.per_byte, cost.cpu_per_operation,
                      cost.cpu_per_byte}) >= 0);
}

TEST(MeasureLink, SendsNoMoreThanAllowedAndTimesAll) {
  for (const int64_t most : {int64_t{1}, int64_t{1} << 20, int64_t{1} << 30}) {
    all_ranks(2, [&](ProcessGroup& group) {
      const LinkTimes times = measure_link(group, kCPU, 1, most, [&](const Tensor& sums) {
        EXPECT_EQ(sums.size(0), 1);
        return group.all_reduce(sums.select(0, 0));
      });
      EXPECT_EQ(times.large_bytes, std::clamp<int64_t>(most / 4, 64 << 10, 1 << 20));
      EXPECT_GT(times.one_small, 0);
      EXPECT_GT(times.small, 0);
      EXPECT_GT(times.large, 0);
    });
  }
}

TEST(MeasureLink, TakesTheLeastOfSeveralRoundsForLinkAndProcessor) {
  all_ranks(2, [&](ProcessGroup& group) {
    int64_t small = 0;
    int64_t large = 0;
    const LinkTimes times = measure_link(group, kCPU, 1, 1 << 20, [&](const Tensor& sums) {
      const int64_t bytes = sums.size(1) * static_cast<int64_t>(sizeof(float));
      ++(bytes == 16 << 10 ? small : large);
      return group.all_reduce(sums.select(0, 0));
    });
    EXPECT_EQ(large % times.large_count, 0);
    EXPECT_GE(large, 3 * times.large_count);
    // Before these rounds there is one that is not timed.
    EXPECT_GE(small, 4 * times.small_count);
    EXPECT_GT(times.small_cpu, 0);
    EXPECT_LT(times.small_cpu, 60) << "of the processor no time was taken";
    EXPECT_GT(times.large_cpu, 0);
    EXPECT_LT(times.large_cpu, 60);
  });
}

TEST(LinkCost, IsDescribedInTheUnitsOfItsSize) {
  EXPECT_EQ(describe(LinkCost{}), "");
  EXPECT_EQ(describe(LinkCost{.per_byte = 1e-9}), "1 GB/s");
  EXPECT_EQ(describe(LinkCost{.per_byte = 1.001e-9}), "999 MB/s");
  EXPECT_EQ(describe(LinkCost{.per_byte = 2e-12}), "500 GB/s");
  EXPECT_EQ(describe(LinkCost{.per_byte = 1e-12}), "") << "faster than can be told";
  EXPECT_EQ(describe(LinkCost{.latency = 3e-5, .per_operation = 1e-5}), "40 µs an operation");
  EXPECT_EQ(describe(LinkCost{.latency = 1e-3}), "1 ms an operation");
  EXPECT_EQ(describe(LinkCost{.per_operation = 0.9996e-3}), "1 ms an operation");
  EXPECT_EQ(describe(LinkCost{.per_operation = 0.999e-3}), "999 µs an operation");
  EXPECT_EQ(describe(LinkCost{.latency = 4e-5, .per_byte = 8e-11}),
            "12.5 GB/s and 40 µs an operation");
}

TEST(LinkCost, TimesThatContradictEachOtherGiveNoNegativeCost) {
  LinkTimes times{.small_bytes = 100, .large_bytes = 300, .small_count = 2, .large_count = 2};
  times.one_small = 1;
  times.small = 0.5;  // two at once take less than one
  EXPECT_EQ(link_cost(times).latency, 1);
  EXPECT_EQ(link_cost(times).per_operation, 0);
  times.small = 1.5;
  times.large = 2.5;
  EXPECT_EQ(link_cost(times).latency, 0.5);
  EXPECT_DOUBLE_EQ(link_cost(times).per_byte, 0.5 / 200);
  EXPECT_DOUBLE_EQ(link_cost(times).per_operation, 0.25);
  times.large_bytes = 100;
  EXPECT_EQ(link_cost(times).per_byte, 0) << "of one size no rate is known";
  EXPECT_EQ(link_cost(times).per_operation, 0.5);
  times.small_cpu = 0.25;
  EXPECT_EQ(link_cost(times).cpu_per_operation, 0.125);
}

}  // namespace
}  // namespace lockstep::dist
