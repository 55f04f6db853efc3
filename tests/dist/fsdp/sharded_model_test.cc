#include "dist/fsdp/sharded_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "autograd/autocast.h"
#include "core/device/copies.h"
#include "core/tensor/allocator.h"
#include "dist/fsdp/fully_shard.h"
#include "dist/group/failure.h"
#include "tests/core/expect_error.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/group/labelled_operations.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

constexpr ShardStrategy kStrategies[] = {ShardStrategy::kFullShard, ShardStrategy::kShardGradOp,
                                         ShardStrategy::kShardOptimizer};

/// Expects that all ranks failed, one with `text`: that may end the others first.
void expect_failure_with(const std::vector<std::exception_ptr>& errors, const std::string& text) {
  std::vector<std::string> texts;
  for (const std::exception_ptr& error : errors) {
    EXPECT_TRUE(error);
    texts.push_back(text_of(error));
  }
  EXPECT_THAT(texts, testing::Contains(HasSubstr(text)));
}

void run_step(ShardedModel& sharded, const SmallNet& net, int sample) {
  sharded.begin_step();
  sharded.begin_leaf();
  net.loss(sample).backward();
  sharded.finish();
}

/// Subtracts a part of the gradients.
void descend(const ShardedModel& sharded) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < sharded.parameters().size(); ++i) {
    sub_(sharded.parameters()[i].tensor, sharded.gradients()[i], 0.1);
  }
}

/// The gradients of all parameters, in their order, on rank 0; empty ones on the others.
std::vector<std::vector<float>> whole_gradients(const ShardedModel& sharded) {
  std::vector<std::vector<float>> result;
  for (size_t i = 0; i < sharded.trained_count(); ++i) {
    const Tensor whole = sharded.collect_parts(i, sharded.gradients());
    result.push_back(whole.defined() ? values_of(whole) : std::vector<float>());
  }
  return result;
}

TEST(ShardedModel, TrainsAsOneRankDoesWithAllSamples) {
  const SmallNet alone;
  for (int step = 0; step < 4; ++step) {
    alone.zero_grad();
    for (int rank = 0; rank < 3; ++rank) alone.loss(3 * step + rank).backward();
    const NoGradGuard no_grad;
    for (const Tensor& each : alone.parameters()) sub_(each, each.grad(), 0.1);
  }
  for (const ShardStrategy strategy : kStrategies) {
    all_ranks(3, [&](ProcessGroup& group) {
      SmallNet net;
      const auto sharded = fully_shard(net, group, {.strategy = strategy});
      EXPECT_EQ(sharded->unit_count(), 4u);
      for (int step = 0; step < 4; ++step) {
        run_step(*sharded, net, 3 * step + group.rank());
        descend(*sharded);
      }
      sharded->mark_changed();
      sharded->summon_full_parameters();
      const std::vector<Tensor> expected = alone.parameters(), got = net.parameters();
      for (size_t i = 0; i < expected.size(); ++i) {
        const std::vector<float> a = values_of(expected[i]), b = values_of(got[i]);
        for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5);
      }
    });
  }
}

/// The gradients of a step of `leaves` leaves of one backward each, on `ranks` ranks.
std::vector<std::vector<float>> gradients_of_leaves(int64_t leaves, int ranks,
                                                    ShardStrategy strategy, int shard_size = 0) {
  std::vector<std::vector<float>> gradients;
  all_ranks(ranks, [&](ProcessGroup& group) {
    SmallNet net;
    const LeafRange own = LeafDeal::even(leaves, ranks).of(group.rank());
    const auto sharded = fully_shard(net, group,
                                     {.strategy = strategy,
                                      .shard_size = shard_size,
                                      .leaves = own,
                                      .tree_leaves = leaves,
                                      .uneven_passes = true});
    sharded->begin_step();
    for (int64_t leaf = own.first; leaf < own.end; ++leaf) {
      sharded->begin_leaf();
      sharded->expect_last_backward(leaf + 1 == own.end);
      net.loss(static_cast<int>(leaf)).backward();
    }
    int64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      most = std::max(most, LeafDeal::even(leaves, ranks).of(rank).size());
    }
    for (int64_t i = own.size(); i < most; ++i) sharded->pass_without_samples();
    sharded->finish();
    const auto whole = whole_gradients(*sharded);
    if (group.rank() == 0) gradients = whole;
  });
  return gradients;
}

TEST(ShardedModel, GradientsHaveTheBitsOfOneTreeOfLeaves) {
  const auto expected = gradients_of_leaves(4, 1, ShardStrategy::kFullShard);
  for (const int ranks : {1, 2, 3}) {
    for (const ShardStrategy strategy : kStrategies) {
      EXPECT_EQ(gradients_of_leaves(4, ranks, strategy), expected);
    }
  }
}

/// Runs the steps of `deals`, and expects the gradients of each to be `expected`.
void expect_gradients_by_deals(ShardStrategy strategy, int shard_size,
                               const std::vector<std::vector<int64_t>>& deals,
                               const std::vector<std::vector<float>>& expected) {
  all_ranks(4, [&](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group,
                                     {.strategy = strategy,
                                      .shard_size = shard_size,
                                      .leaves = LeafDeal::even(8, 4).of(group.rank()),
                                      .tree_leaves = 8,
                                      .uneven_passes = true});
    for (const std::vector<int64_t>& counts : deals) {
      const LeafDeal deal = LeafDeal::of_counts(counts);
      const LeafRange own = deal.of(group.rank());
      sharded->deal_out(deal);
      sharded->begin_step();
      for (int64_t leaf = own.first; leaf < own.end; ++leaf) {
        sharded->begin_leaf();
        sharded->expect_last_backward(leaf + 1 == own.end);
        net.loss(static_cast<int>(leaf)).backward();
      }
      const int64_t most = std::ranges::max(counts);
      for (int64_t i = own.size(); i < most; ++i) sharded->pass_without_samples();
      sharded->finish();
      const auto whole = whole_gradients(*sharded);
      if (group.rank() == 0) {
        EXPECT_EQ(whole, expected) << to_string(deal);
      }
    }
  });
}

TEST(ShardedModel, ADealThatChangesBetweenStepsChangesNoBit) {
  const auto expected = gradients_of_leaves(8, 1, ShardStrategy::kFullShard);
  const std::vector<std::vector<int64_t>> deals = {{1, 2, 1, 4}, {5, 1, 1, 1}, {2, 2, 2, 2}};
  for (const ShardStrategy strategy : kStrategies) {
    expect_gradients_by_deals(strategy, 0, deals, expected);
  }
  for (const int shard_size : {1, 2, 4}) {
    expect_gradients_by_deals(ShardStrategy::kHybridShard, shard_size, deals, expected);
  }
}

TEST(ShardedModel, AFrozenUnitHasNoPartInTheTreeOfLeaves) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    for (const NamedTensor& each : net.blocks[0]->named_parameters()) {
      each.tensor.set_requires_grad(false);
    }
    // A unit with one trained parameter, and units with two.
    net.blocks[1]->bias.set_requires_grad(false);
    const LeafRange own = LeafDeal::even(6, 2).of(group.rank());
    const auto sharded = fully_shard(net, group, {.leaves = own, .tree_leaves = 6});
    sharded->begin_step();
    for (int64_t leaf = own.first; leaf < own.end; ++leaf) {
      sharded->begin_leaf();
      sharded->expect_last_backward(leaf + 1 == own.end);
      net.loss(static_cast<int>(leaf)).backward();
    }
    sharded->finish();
    const SmallNet alone;
    for (int leaf = 0; leaf < 6; ++leaf) alone.loss(leaf).backward();
    const auto gradients = whole_gradients(*sharded);
    ASSERT_EQ(gradients.size(), sharded->trained_count());
    ASSERT_EQ(gradients.size(), 5u);  // first, last, a weight, a weight and a bias
    const std::vector<float> weight = values_of(alone.blocks[1]->weight.grad());
    for (size_t i = 0; i < weight.size() && group.rank() == 0; ++i) {
      ASSERT_NEAR(gradients[2][i], weight[i], 1e-5);
    }
  });
}

TEST(ShardedModel, GradientsOfReplicasHaveTheBitsOfOneTreeOfLeaves) {
  for (const int64_t leaves : {7, 8, 13}) {
    const auto expected = gradients_of_leaves(leaves, 1, ShardStrategy::kFullShard);
    for (const auto& [ranks, size] :
         {std::pair(4, 2), std::pair(6, 2), std::pair(6, 3), std::pair(3, 1)}) {
      EXPECT_EQ(gradients_of_leaves(leaves, ranks, ShardStrategy::kHybridShard, size), expected)
          << leaves << " leaves on " << ranks << " ranks in groups of " << size;
    }
  }
}

TEST(ShardedModel, ReplicasOfShardsTrainAsOneRankDoes) {
  const SmallNet alone;
  for (int step = 0; step < 3; ++step) {
    alone.zero_grad();
    for (int rank = 0; rank < 6; ++rank) alone.loss(6 * step + rank).backward();
    const NoGradGuard no_grad;
    for (const Tensor& each : alone.parameters()) sub_(each, each.grad(), 0.1);
  }
  for (const int size : {1, 2, 3, 6}) {
    all_ranks(6, [&](ProcessGroup& group) {
      SmallNet net;
      const auto sharded =
          fully_shard(net, group, {.strategy = ShardStrategy::kHybridShard, .shard_size = size});
      EXPECT_EQ(sharded->shard_size(), size);
      for (int step = 0; step < 3; ++step) {
        run_step(*sharded, net, 6 * step + group.rank());
        descend(*sharded);
      }
      sharded->mark_changed();
      sharded->summon_full_parameters();
      const std::vector<Tensor> expected = alone.parameters(), got = net.parameters();
      for (size_t i = 0; i < expected.size(); ++i) {
        const std::vector<float> a = values_of(expected[i]), b = values_of(got[i]);
        for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5);
      }
    });
  }
}

TEST(ShardedModel, GatheredCastsAreThoseOfAutocast) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not see what oneDNN's cache of bf16 products locks";
#endif
  for (const ShardStrategy strategy : {ShardStrategy::kFullShard, ShardStrategy::kShardGradOp}) {
    all_ranks(2, [&](ProcessGroup& group) {
      SmallNet whole, cast;
      const auto expected = fully_shard(whole, group, {.strategy = strategy});
      const auto sharded =
          fully_shard(cast, group, {.strategy = strategy, .gather_dtype = DType::kBF16});
      for (int step = 0; step < 3; ++step) {
        const AutocastGuard region(DeviceType::kCPU);
        run_step(*expected, whole, 2 * step + group.rank());
        run_step(*sharded, cast, 2 * step + group.rank());
        EXPECT_EQ(whole_gradients(*sharded), whole_gradients(*expected));
        descend(*expected);
        descend(*sharded);
      }
      sharded->summon_full_parameters();
      const std::vector<float> weight = values_of(cast.blocks[1]->weight);
      expected->summon_full_parameters();
      EXPECT_EQ(weight, values_of(whole.blocks[1]->weight));
    });
  }
}

TEST(ShardedModel, WithoutATreeAStepMayHaveAnyNumberOfLeaves) {
  all_ranks(2, [](ProcessGroup& group) {
    std::vector<std::vector<std::vector<float>>> gradients;
    for (const bool begins_leaves : {false, true}) {
      SmallNet net;
      const auto sharded = fully_shard(net, group);
      sharded->begin_step();
      for (int pass = 0; pass < 3; ++pass) {
        if (begins_leaves) sharded->begin_leaf();
        net.loss(3 * group.rank() + pass).backward();
      }
      sharded->finish();
      gradients.push_back(whole_gradients(*sharded));
    }
    EXPECT_EQ(gradients[0], gradients[1]);
  });
}

TEST(ShardedModel, AMatrixThatIsGatheredAsACastIsNamedWhereItIsReadOtherwise) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group, {.gather_dtype = DType::kBF16});
    const NoGradGuard no_grad;
    expect_error<DeviceError>([&] { (void)net.loss(0).item<float>(); }, "blocks.0.weight",
                              "gather_dtype");
    sharded->gather_casts(false);
    (void)net.loss(0).item<float>();
  });
}

TEST(ShardedModel, CommunicationAloneChangesNothing) {
  for (const ShardStrategy strategy :
       {ShardStrategy::kFullShard, ShardStrategy::kShardGradOp, ShardStrategy::kShardOptimizer,
        ShardStrategy::kHybridShard}) {
    all_ranks(4, [&](ProcessGroup& group) {
      const int size = strategy == ShardStrategy::kHybridShard ? 2 : 0;
      SmallNet quiet, busy;
      const auto expected = fully_shard(quiet, group, {.strategy = strategy, .shard_size = size});
      const auto sharded = fully_shard(busy, group, {.strategy = strategy, .shard_size = size});
      for (int step = 0; step < 2; ++step) {
        sharded->communicate(2);
        run_step(*expected, quiet, 4 * step + group.rank());
        run_step(*sharded, busy, 4 * step + group.rank());
        EXPECT_EQ(whole_gradients(*sharded), whole_gradients(*expected));
        EXPECT_EQ(sharded->reduced_units().size(), sharded->unit_count());
        descend(*expected);
        descend(*sharded);
      }
    });
  }
}

TEST(ShardedModel, ReplicasThatDoNotDivideTheRanksAreRefused) {
  const auto errors = run_thread_ranks(3, [](ProcessGroup& group) {
    SmallNet net;
    fully_shard(net, group, {.strategy = ShardStrategy::kHybridShard, .shard_size = 2});
  });
  for (const std::exception_ptr& error : errors) {
    EXPECT_THAT(text_of(error), HasSubstr("expected a divisor of the 3 ranks"));
  }
}

TEST(ShardedModel, BackwardsOfAStepAddUpWithAndWithoutCommunication) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    sharded->begin_step();
    for (int i = 0; i < 3; ++i) net.loss(10 * i + group.rank()).backward();
    sharded->finish();
    const auto expected = whole_gradients(*sharded);

    sharded->begin_step();
    {
      const auto no_sync = sharded->no_sync();
      for (int i = 0; i < 2; ++i) net.loss(10 * i + group.rank()).backward();
    }
    net.loss(20 + group.rank()).backward();
    sharded->finish();
    const auto got = whole_gradients(*sharded);
    for (size_t i = 0; i < got.size(); ++i) {
      for (size_t k = 0; k < got[i].size(); ++k) ASSERT_NEAR(got[i][k], expected[i][k], 1e-5);
    }
  });
}

TEST(ShardedModel, WhatNoBackwardOfAStepCommunicatedIsReducedAtItsEnd) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    run_step(*sharded, net, group.rank());
    const auto expected = whole_gradients(*sharded);
    run_step(*sharded, net, 10 + group.rank());
    const auto between = whole_gradients(*sharded);
    if (group.rank() == 0) {
      EXPECT_NE(between, expected);
    }
    sharded->begin_step();
    {
      const auto no_sync = sharded->no_sync();
      net.loss(group.rank()).backward();
    }
    sharded->finish();
    EXPECT_EQ(whole_gradients(*sharded), expected);
  });
}

TEST(ShardedModel, ParametersAreGatheredAheadWithinALimit) {
  constexpr int64_t kBlock = 8192 * sizeof(float);  // an arena: the weight, and the bias's block
  const auto allocated_in_first_block = [](int64_t prefetch_bytes) {
    int64_t bytes = 0;
    all_ranks(2, [&](ProcessGroup& group) {
      SmallNet net(5);
      const auto sharded = fully_shard(net, group, {.prefetch_bytes = prefetch_bytes});
      run_step(*sharded, net, 0);  // the order of units is known then
      net.blocks[0]->register_forward_pre_hook([&](const HookedModule&, std::span<Tensor>) {
        group.barrier().wait();  // all ranks have begun their gathers, and wait here
        if (group.rank() == 0) bytes = allocator(kCPU).stats().allocated;
        group.barrier().wait();
      });
      const NoGradGuard no_grad;
      net.loss(1);
    });
    return bytes;
  };
  const int64_t next = allocated_in_first_block(0);
  EXPECT_EQ(allocated_in_first_block(2 * kBlock) - next, 2 * kBlock) << "one more on two ranks";
  EXPECT_EQ(allocated_in_first_block(10 * kBlock) - next, 2 * 3 * kBlock);
}

TEST(ShardedModel, TheLastUnitOfForwardStaysForBackwardThatBeginsWithIt) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    const Tensor& last = net.blocks.back()->weight;
    const auto is_here = [](const Tensor& weight) {
      try {
        return weight.data() != nullptr;
      } catch (const DeviceError&) {
        return false;
      }
    };
    (void)net.loss(0);
    EXPECT_FALSE(is_here(last)) << "nobody knows yet that it is the last";
    sharded->begin_step();
    sharded->begin_leaf();
    const Tensor loss = net.loss(0);
    EXPECT_TRUE(is_here(last));
    EXPECT_FALSE(is_here(net.blocks[0]->weight));
    loss.backward();
    sharded->finish();
    EXPECT_FALSE(is_here(last));
    {
      const NoGradGuard no_grad;
      (void)net.loss(1);
      EXPECT_FALSE(is_here(last)) << "no backward comes";
    }
  });
}

TEST(ShardedModel, GatherAndScatterMakeNoHiddenCopies) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    run_step(*sharded, net, 0);
    const int64_t before = hidden_copies().copies;
    run_step(*sharded, net, 1);
    // `first`, `last` and the biases are summed over rows by the derivative of broadcasting, which
    // has no destination.
    EXPECT_LE(hidden_copies().copies - before, 2 * 8);
  });
}

TEST(ShardedModel, CollectsAndDistributesOneTensorAtATime) {
  const SmallNet original;
  const std::vector<Tensor> expected = original.parameters();
  all_ranks(3, [&](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    std::vector<Tensor> parts;
    for (const NamedTensor& each : sharded->parameters()) parts.push_back(each.tensor);
    const std::vector<Tensor> parameters = net.parameters();
    ASSERT_EQ(sharded->trained_count(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Tensor whole = sharded->collect(parameters[i], /*root=*/1);
      ASSERT_EQ(whole.defined(), group.rank() == 1);
      if (whole.defined()) {
        EXPECT_EQ(values_of(whole), values_of(expected[i]));
      }
      const Tensor doubled = whole.defined() ? whole * 2.0 : Tensor();
      sharded->distribute_parts(i, doubled, parts, /*root=*/1);
      const Tensor again = sharded->collect_parts(i, parts, /*root=*/2);
      if (again.defined()) {
        EXPECT_EQ(values_of(again), values_of(expected[i] * 2.0));
      }
    }
  });
}

TEST(ShardedModel, SharedParametersAreTheRoots) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net(2);
    // Both units have block 0's parameters.
    const std::vector<HookedModule*> units = {net.blocks[0].get(), net.blocks[0].get(),
                                              net.blocks[1].get()};
    const auto sharded = fully_shard(net, units, group);
    EXPECT_EQ(sharded->unit_count(), 2u);
    run_step(*sharded, net, group.rank());
  });
}

TEST(ShardedModel, FrozenAndIgnoredParametersStayAsTheyAre) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    net.blocks[1]->weight.set_requires_grad(false);
    const std::vector<float> frozen = values_of(net.blocks[1]->weight);
    const auto sharded = fully_shard(net, group, {.ignored = {net.last}});
    for (int step = 0; step < 2; ++step) {
      run_step(*sharded, net, step);
      descend(*sharded);
    }
    EXPECT_TRUE(net.last.grad().defined()) << "its gradient is this rank's";
    EXPECT_NE(net.last.data(), nullptr);
    sharded->summon_full_parameters();
    EXPECT_EQ(values_of(net.blocks[1]->weight), frozen);
  });
}

TEST(ShardedModel, WithoutGradientsForwardLeavesNothingGatheredButTheRoot) {
  all_ranks(2, [](ProcessGroup& group) {
    for (const ShardStrategy strategy : {ShardStrategy::kFullShard, ShardStrategy::kShardGradOp}) {
      SmallNet net;
      const auto sharded = fully_shard(net, group, {.strategy = strategy});
      const float expected = SmallNet().loss(3).item<float>();
      const NoGradGuard no_grad;
      EXPECT_EQ(net.loss(3).item<float>(), expected);
      EXPECT_NE(net.last.data(), nullptr);
      expect_error<DeviceError>([&] { (void)net.blocks[0]->weight.data(); }, "blocks.0.weight");
    }
  });
}

TEST(ShardedModel, AParameterWithoutAGradientIsAnErrorOfItsBackward) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    sharded->begin_step();
    const Tensor x = random_tensor({1, SmallNet::kWidth}, 5);
    sum(net.blocks[0]->forward(x)).backward();
  });
  expect_failure_with(errors, "received no gradient");
}

TEST(ShardedModel, RanksThatWrapOtherUnitsAreRefused) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    std::vector<HookedModule*> units = net.sequence();
    if (group.rank() == 1) std::swap(units[0], units[1]);
    fully_shard(net, units, group);
  });
  expect_failure_with(errors, "[fully_shard] rank 1 has another model");
}

TEST(ShardedModel, ParametersOnMetaAreRefusedByName) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const DefaultDeviceGuard on_meta(kMeta);
    Layer layer("", ones({4, 4}), ones({4}));
    fully_shard(layer, std::vector<HookedModule*>{}, group);
  });
  expect_failure_with(errors, "parameter weight [4, 4] is on meta");
}

TEST(ShardedModel, ADerivativeOfAGradientIsRefused) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    sharded->begin_step();
    net.loss(1).backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  });
  expect_failure_with(errors, "create_graph");
}

TEST(ShardedModel, BackwardThroughAGraphOfChangedParametersIsAnError) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    sharded->begin_step();
    const Tensor stale = net.loss(0);
    net.loss(1).backward();
    sharded->finish();
    descend(*sharded);
    sharded->begin_step();
    net.loss(2);
    stale.backward();
  });
  expect_failure_with(errors, "changed in place");
}

TEST(ShardedModel, OperationsCarryThePathOfTheirUnit) {
  const std::set<std::string> found = labelled_operations([](ProcessGroup& group) {
    const SmallNet net(2);
    const auto sharded = fully_shard(net, group);
    run_step(*sharded, net, group.rank());
  });
  EXPECT_THAT(found, testing::ElementsAre(
                         "all_gather of root unit", "all_gather of unit blocks.0",
                         "all_gather of unit blocks.1", "reduce_scatter of root unit",
                         "reduce_scatter of unit blocks.0", "reduce_scatter of unit blocks.1"));
}

}  // namespace
}  // namespace lockstep::dist
