// A Reducer whose ranks get other leaves between steps.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "dist/ddp/reducer.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/layered_net.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

constexpr BucketLimits kSmallLimits = {.first_bytes = 3000, .bytes = 6000};

/// Options of rank `rank` of `ranks` for steps of `leaves` leaves, as they are before deals change.
ReducerOptions even_options(int64_t leaves, int rank, int ranks, BucketLimits buckets) {
  ReducerOptions options;
  options.buckets = buckets;
  options.leaves = LeafDeal::even(leaves, ranks).of(rank);
  options.tree_leaves = leaves;
  return options;
}

std::vector<float> gradients_of_one_rank(int64_t leaves) {
  const LayeredNet net;
  Reducer reducer(net.parameters, nullptr, even_options(leaves, 0, 1, kSmallLimits));
  run_step(reducer, net, {0, leaves});
  return numbers(reducer.gradients());
}

/// Gradients of each step on rank 0, the same on all ranks, with a deal for each step.
std::vector<std::vector<float>> gradients_by_deals(const std::vector<LeafDeal>& deals,
                                                   BucketLimits buckets, Device device = kCPU) {
  std::vector<std::vector<float>> results(deals.size());
  const int ranks = deals.front().ranks();
  all_ranks(ranks, [&](ProcessGroup& group) {
    // Ranks that share a device need separate streams.
    const StreamGuard own_stream(get_stream_from_pool(device));
    const LayeredNet net(device);
    const ReducerOptions options =
        even_options(deals.front().leaves(), group.rank(), ranks, buckets);
    Reducer reducer(net.parameters, &group, options);
    for (size_t step = 0; step < deals.size(); ++step) {
      reducer.deal_out(deals[step]);
      run_step(reducer, net, deals[step].of(group.rank()));
      const std::vector<float> sums = numbers(reducer.gradients());
      if (group.rank() == 0) results[step] = sums;
      const Tensor first = empty({std::ssize(sums)}, DType::kF32);
      std::ranges::copy(sums, first.data<float>());
      group.broadcast(first, 0).wait();
      EXPECT_TRUE(std::ranges::equal(sums, std::span(first.data<float>(), sums.size())));
    }
  });
  return results;
}

LeafDeal deal_of(std::vector<int64_t> counts) { return LeafDeal::of_counts(counts); }

TEST(ReducerDeal, ADealThatChangesBetweenStepsChangesNoBit) {
  const std::vector<float> expected = gradients_of_one_rank(8);
  const std::vector<LeafDeal> deals = {deal_of({3, 3, 2}), deal_of({1, 1, 6}),   deal_of({1, 1, 6}),
                                       deal_of({6, 1, 1}), LeafDeal::even(8, 3), deal_of({1, 6, 1}),
                                       deal_of({2, 4, 2})};
  for (const Device device : {kCPU, Device(DeviceType::kHost, 0)}) {
    for (const std::vector<float>& each : gradients_by_deals(deals, kSmallLimits, device)) {
      EXPECT_TRUE(each == expected) << to_string(device);
    }
  }
}

TEST(ReducerDeal, ADealMayChangeWhileBucketSizesAreChosen) {
  const std::vector<float> expected = gradients_of_one_rank(6);
  const std::vector<LeafDeal> deals = {deal_of({5, 1}), deal_of({4, 2}), deal_of({1, 5}),
                                       deal_of({2, 4}), deal_of({3, 3}), deal_of({5, 1})};
  for (const std::vector<float>& each : gradients_by_deals(deals, {})) {
    EXPECT_TRUE(each == expected);
  }
}

TEST(ReducerDeal, GradientsStayUntilTheStepThatFollowsANewDeal) {
  all_ranks(2, [&](ProcessGroup& group) {
    const LayeredNet net;
    Reducer reducer(net.parameters, &group, even_options(8, group.rank(), 2, kSmallLimits));
    run_step(reducer, net, LeafDeal::even(8, 2).of(group.rank()));
    const std::vector<float> before = numbers(reducer.gradients());
    reducer.deal_out(deal_of({7, 1}));
    EXPECT_EQ(numbers(reducer.gradients()), before);
    run_step(reducer, net, deal_of({7, 1}).of(group.rank()));
    EXPECT_EQ(numbers(reducer.gradients()), before);
  });
}

TEST(ReducerDeal, RefusesADealOfOtherLeavesOrRanksOrWithoutATree) {
  all_ranks(2, [&](ProcessGroup& group) {
    const LayeredNet net;
    Reducer reducer(net.parameters, &group, even_options(8, group.rank(), 2, kSmallLimits));
    expect_error<DistError>(
        [&] {
          reducer.deal_out(deal_of({4, 3}));
        },
        "[reducer] deal: expected 8 leaves for 2 ranks, got 7 for 2.");
    expect_error<DistError>([&] { reducer.deal_out(deal_of({4, 3, 1})); }, "got 8 for 3");
    const LayeredNet other;
    Reducer in_rank_order(other.parameters, &group);
    expect_error<DistError>(
        [&] {
          in_rank_order.deal_out(deal_of({1, 1}));
        },
        "expected a sum over a tree of leaves");
  });
}

}  // namespace
}  // namespace lockstep::dist
