#include "dist/ddp/bucket_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "core/tensor/stream.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/reducer.h"
#include "tests/dist/ddp/layered_net.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

/// Four layers of 40 KB each.
LayeredNet large_net(Device device = kCPU) { return LayeredNet(device, 4, 100); }

/// A step with one sample per leaf.
void run_small_step(Reducer& reducer, const LayeredNet& net, const LeafRange& leaves) {
  run_step(reducer, net, leaves, 0, 1);
}

TEST(BucketTuner, KeepsTheEarliestTimeOfEachGradientAndOfTheEndOfBackward) {
  const BucketTuner::TimePoint begin = std::chrono::steady_clock::now();
  const auto at = [&](int ms) { return begin + std::chrono::milliseconds(ms); };
  BucketTuner tuner;
  tuner.begin_step(3);
  tuner.arrived(1, at(1));
  tuner.begin_step(3);  // the step before was not ended, so it counts for nothing
  tuner.arrived(2, at(150));
  tuner.arrived(2, at(100));
  tuner.arrived(0, at(110));
  tuner.end_step(at(130));
  EXPECT_TRUE(tuner.is_measuring());
  // Seconds after the first gradient; parameter 1 has none and is ready at the end.
  EXPECT_THAT(tuner.times().ready, ElementsAre(DoubleEq(0.01), DoubleEq(0.03), DoubleEq(0)));
  EXPECT_DOUBLE_EQ(tuner.times().backward_end, 0.03);

  tuner.begin_step(3);
  tuner.arrived(2, at(1000));
  tuner.arrived(1, at(1020));
  tuner.arrived(0, at(1015));
  tuner.end_step(at(1040));
  EXPECT_FALSE(tuner.is_measuring());
  EXPECT_THAT(tuner.times().ready, ElementsAre(DoubleEq(0.01), DoubleEq(0.02), DoubleEq(0)));
  EXPECT_DOUBLE_EQ(tuner.times().backward_end, 0.03) << "the second step was slower";
}

TEST(BucketTuner, WithoutAnyGradientAllAreReadyAtTheEnd) {
  BucketTuner tuner;
  tuner.begin_step(2);
  tuner.end_step(std::chrono::steady_clock::now());
  EXPECT_THAT(tuner.times().ready, ElementsAre(0, 0));
  EXPECT_EQ(tuner.times().backward_end, 0);
}

TEST(Reducer, SizesThatAreNotGivenAreChosenAfterTheThirdStepAlikeOnAllRanks) {
  for (const int64_t tree_leaves : {0, 6}) {
    std::vector<BucketPlan> plans(3);
    all_ranks(3, [&](ProcessGroup& group) {
      const LayeredNet net = large_net();
      ReducerOptions options;
      options.tree_leaves = tree_leaves;
      if (tree_leaves > 0) options.leaves = LeafDeal::even(tree_leaves, 3).of(group.rank());
      Reducer reducer(net.parameters, &group, options);
      for (int step = 0; step < 3; ++step) {
        EXPECT_FALSE(reducer.choice());
        EXPECT_FALSE(reducer.is_settled());
        run_small_step(reducer, net, options.leaves);
      }
      const std::vector<float> sums = numbers(reducer.gradients());
      ASSERT_TRUE(reducer.choice());
      EXPECT_FALSE(reducer.is_settled()) << "its plan is that of the next step";
      BucketTimes::TimePoint last;
      register_hook(net.parameters[0].tensor, [&](const Tensor&) {
        last = std::chrono::steady_clock::now();
        return Tensor();
      });
      run_small_step(reducer, net, options.leaves);
      EXPECT_TRUE(reducer.is_settled());
      EXPECT_EQ(reducer.plan().buckets.size(), reducer.choice()->buckets);
      EXPECT_EQ(reducer.times().buckets()[0].bytes, reducer.choice()->first_bytes);
      // How the time divides into latency and per-byte cost depends on the load of the machine.
      const LinkCost& link = reducer.choice()->link;
      EXPECT_GT(link.latency + link.seconds(1), 0);
      if (reducer.plan().buckets.size() > 1) {
        EXPECT_LT(reducer.times().buckets()[0].launched, last);
      }
      EXPECT_EQ(numbers(reducer.gradients()), sums);
      plans[static_cast<size_t>(group.rank())] = reducer.plan();
    });
    EXPECT_EQ(plans[0], plans[1]);
    EXPECT_EQ(plans[0], plans[2]);
  }
}

TEST(Reducer, SizesThatAreGivenStay) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net = large_net();
    ReducerOptions options;
    options.buckets = {.first_bytes = 1, .bytes = 70'000};
    Reducer reducer(net.parameters, &group, options);
    for (int step = 0; step < 4; ++step) run_small_step(reducer, net, {0, 1});
    EXPECT_FALSE(reducer.choice());
    EXPECT_TRUE(reducer.is_settled());
    EXPECT_EQ(reducer.plan().buckets.size(), 4u);

    const LayeredNet other = large_net();
    options.buckets = {.first_bytes = 0, .bytes = 1};
    Reducer half(other.parameters, &group, options);
    for (int step = 0; step < 4; ++step) run_small_step(half, other, {0, 1});
    ASSERT_TRUE(half.choice());
    EXPECT_EQ(half.choice()->limits.bytes, 1);
    EXPECT_EQ(half.choice()->limits.first_bytes, 1);
  });
}

TEST(Reducer, OnADeviceWithStreamsSizesAreChosenFromItsTimes) {
  all_ranks(2, [](ProcessGroup& group) {
    const Device device(DeviceType::kHost, 0);
    const OwnedStream stream(device);
    const StreamGuard guard(stream.get());
    const LayeredNet net = large_net(device);
    Reducer reducer(net.parameters, &group);
    std::vector<float> sums;
    for (int step = 0; step < 3; ++step) {
      EXPECT_FALSE(reducer.choice());
      run_small_step(reducer, net, {0, 1});
      if (step == 0) sums = numbers(reducer.gradients());
    }
    ASSERT_TRUE(reducer.choice());
    EXPECT_GT(reducer.choice()->link.latency + reducer.choice()->link.seconds(1), 0);
    run_small_step(reducer, net, {0, 1});
    EXPECT_TRUE(reducer.is_settled());
    EXPECT_EQ(reducer.plan().buckets.size(), reducer.choice()->buckets);
    EXPECT_EQ(numbers(reducer.gradients()), sums);
  });
}

/// Gradients of rank 0 of three after six steps; checks that all ranks have the same.
std::vector<float> sums(const BucketLimits& limits, bool average) {
  std::vector<std::vector<float>> results(3);
  all_ranks(3, [&](ProcessGroup& group) {
    const LayeredNet net = large_net();
    ReducerOptions options;
    options.buckets = limits;
    options.average = average;
    options.leaves = {group.rank(), group.rank() + 1};
    Reducer reducer(net.parameters, &group, options);
    for (int step = 0; step < 6; ++step) run_small_step(reducer, net, options.leaves);
    results[static_cast<size_t>(group.rank())] = numbers(reducer.gradients());
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  return results[0];
}

TEST(Reducer, NoBitOfASumDependsOnTheSizesOfBuckets) {
  for (const bool average : {false, true}) {
    const std::vector<float> expected = sums({.first_bytes = 1, .bytes = 1}, average);
    for (const int64_t bytes : {0, 50'000, 90'000, 1'000'000}) {
      EXPECT_TRUE(sums({.first_bytes = bytes, .bytes = bytes}, average) == expected) << bytes;
    }
  }
}

TEST(Ddp, ChoosesSizesToo) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net = large_net();
    Ddp ddp(net, group);
    std::vector<float> first;
    for (int step = 0; step < 5; ++step) {
      EXPECT_EQ(ddp.reducer().choice().has_value(), step >= 3) << step;
      net.loss(group.rank()).backward();
      if (step == 0) first = numbers(ddp.gradients());
      EXPECT_EQ(numbers(ddp.gradients()), first) << step;
      ddp.zero_grad();
    }
    EXPECT_TRUE(ddp.reducer().is_settled());
  });
}

}  // namespace
}  // namespace lockstep::dist
