// What a sharded model refuses, word for word, and the sizes of what it keeps and sends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "dist/fsdp/fully_shard.h"
#include "dist/fsdp/sharded_model.h"
#include "dist/group/planning_group.h"
#include "tests/core/expect_error.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

/// Expects that a net with these options is refused on all of two ranks.
void expect_options_refused(const ShardOptions& options, const std::string& text) {
  all_ranks(2, [&](ProcessGroup& group) {
    SmallNet net(1);
    expect_error<DistError>([&] { (void)fully_shard(net, group, options); }, text);
  });
}

TEST(ShardedModel, AParameterIsHereOnlyWhileItsModuleRuns) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    const Tensor weight = net.blocks[1]->weight;
    expect_error<DeviceError>([&] { (void)weight.sum(); },
                              "parameter blocks.1.weight is not here: the values of its unit "
                              "\"blocks.1\" are spread",
                              "summon_full");
    bool was_here = false;
    net.blocks[2]->register_forward_pre_hook([&](const HookedModule&, std::span<Tensor>) {
      expect_error<DeviceError>([&] { (void)weight.data(); }, "blocks.1.weight");
      was_here = net.blocks[2]->weight.data() != nullptr;
    });
    sharded->begin_step();
    sharded->begin_leaf();
    net.loss(0).backward();
    sharded->finish();
    EXPECT_TRUE(was_here);
    expect_error<DeviceError>([&] { (void)net.first.data(); }, "first");
    sharded->summon_full_parameters();
    EXPECT_NE(weight.data(), nullptr);
    sharded->release_full_parameters();
    expect_error<DeviceError>([&] { (void)weight.data(); }, "blocks.1.weight");
  });
}

TEST(ShardedModelChecks, ADealOfOtherLeavesAndOneOfEvenPassesAreRefused) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded =
        fully_shard(net, group, {.leaves = {group.rank(), group.rank() + 1}, .tree_leaves = 2});
    const std::vector<int64_t> counts = {2, 1};
    expect_error<DistError>([&] { sharded->deal_out(LeafDeal::of_counts(counts)); },
                            "[fully_shard] deal: expected 2 leaves for 2 ranks, got 3 for 2");
    expect_error<DistError>([&] { sharded->deal_out(LeafDeal::even(2, 2)); },
                            "[fully_shard] deal_out: expected ShardOptions::uneven_passes");
  });
}

TEST(ShardedModelChecks, OptionsThatContradictEachOtherAreRefused) {
  expect_options_refused({.prefetch_bytes = -1},
                         "[fully_shard] prefetch_bytes: expected at least 0, got -1.");
  expect_options_refused({.shard_size = 1},
                         "[fully_shard] shard_size: expected it with HYBRID_SHARD alone, got 1.");
  for (const int size : {0, 3, -1}) {
    expect_options_refused({.strategy = ShardStrategy::kHybridShard, .shard_size = size},
                           "[fully_shard] shard_size: expected a divisor of the 2 ranks, which "
                           "form groups of so many, got " +
                               std::to_string(size) + ".");
  }
  expect_options_refused({.tree_leaves = 2, .reduce_dtype = DType::kBF16},
                         "[fully_shard] reduce_dtype: sums over leaves keep the bits of one rank, "
                         "which a narrower dtype on the way would change. Leave one of them out.");
  expect_options_refused({.tree_leaves = 2, .average = true},
                         "[fully_shard] average: a sum over leaves is divided by what the leaves "
                         "are of, not by the number of ranks. Divide it by the number of samples.");
  expect_options_refused({.tree_leaves = 1},
                         "[fully_shard] tree_leaves: expected at least one for each of the 2 "
                         "ranks, got 1.");
  expect_options_refused({.uneven_passes = true},
                         "[fully_shard] uneven_passes: expected accumulates or tree_leaves with "
                         "it, without which every backward is summed over the ranks.");
  expect_options_refused({.leaves = {0, 2}},
                         "[fully_shard] leaves: without tree_leaves expected one, as gradients "
                         "are added as they come, got 2.");
}

TEST(ShardedModelChecks, ParametersMustBeOfOneKind) {
  all_ranks(2, [](ProcessGroup& group) {
    const auto shard = [&](const Tensor& weight, const Tensor& bias) {
      Layer layer("", weight, bias);
      (void)fully_shard(layer, std::vector<HookedModule*>{}, group);
    };
    const Tensor weight = ones({4, 4});
    expect_error<DTypeError>(
        [&] { shard(weight, ones({4}, DType::kF64)); },
        "[fully_shard] parameter bias: expected float32, as the first, got float64. Convert it, or "
        "leave it out (ShardOptions::ignored).");
    expect_error<DeviceError>(
        [&] {
          shard(weight, ones({4}, {DType::kF32, parse_device("host:0")}));
        },
        "[fully_shard] parameter bias: expected it on cpu, as the first, got host:0. Move the "
        "model to one device.");
    expect_error<ShapeError>(
        [&] {
          shard(ones({4, 3}).t(), ones({4}));
        },
        "[fully_shard] parameter weight: expected a dense, row-major leaf, got sizes [3, 4] with "
        "strides [1, 3]. Register contiguous() tensors.");
    expect_error<DeviceError>(
        [&] {
          SmallNet net;
          (void)fully_shard(net, group, {.cpu_offload = true});
        },
        "[fully_shard] cpu_offload: the parameters are on cpu, whose memory is the host's or has "
        "no streams. Expected them on a device such as cuda:0.");
  });
}

TEST(ShardedModelChecks, UnitsMustBeOfTheModule) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    Layer stranger("stranger", ones({4, 4}), ones({4}));
    expect_error<DistError>(
        [&] { (void)fully_shard(net, std::vector<HookedModule*>{&stranger}, group); },
        "[fully_shard] a unit has a parameter",
        "that the module has not: expected units of the "
        "module itself.");
    HookedModule none("");
    expect_error<ShapeError>([&] { (void)fully_shard(none, std::vector<HookedModule*>{}, group); },
                             "[fully_shard] the module has no parameters: expected at least one.");
  });
}

TEST(ShardedModelChecks, AStepIsHeldToItsOrder) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded =
        fully_shard(net, group, {.leaves = {group.rank(), group.rank() + 1}, .tree_leaves = 2});
    sharded->begin_step();
    expect_error<DistError>([&] { sharded->finish(); },
                            "[fully_shard] finish: expected all 1 leaves of the step.");
    sharded->begin_step();
    sharded->begin_leaf();
    net.loss(0).backward();
    expect_error<DistError>([&] { sharded->begin_leaf(); },
                            "[fully_shard] expected 1 leaves in a step, got one more.");
    expect_error<DistError>([&] { sharded->on_reduced({}); },
                            "[fully_shard] on_reduced: expected no tree_leaves, whose sums are "
                            "complete after the step's last backward alone.");
    expect_error<DistError>([&] { sharded->pass_without_samples(); },
                            "[fully_shard] pass_without_samples: expected "
                            "ShardOptions::uneven_passes. Set it on all ranks.");
    sharded->summon_full_parameters();
    expect_error<DistError>([&] { sharded->begin_step(); },
                            "[fully_shard] begin_step: expected release_full_parameters() before");
    sharded->release_full_parameters(false);
    sharded->release_full_parameters(false);  // nothing is summoned
    sharded->begin_step();
  });
}

/// Bytes that rank 0 of a plan sends, by kind.
struct PlannedBytes {
  uint64_t gathered = 0;
  uint64_t reduced = 0;
  uint64_t summed = 0;
};

PlannedBytes communicate(const ShardOptions& options, int ranks, int64_t passes) {
  PlanningGroup group(0, ranks);
  SmallNet net;
  const auto sharded = fully_shard(net, group, options);
  const auto sent = [&](OpKind kind) { return group.bytes_sent(kind); };
  const PlannedBytes before{sent(OpKind::kAllGather), sent(OpKind::kReduceScatter),
                            sent(OpKind::kAllReduce)};
  sharded->communicate(passes);
  return {sent(OpKind::kAllGather) - before.gathered, sent(OpKind::kReduceScatter) - before.reduced,
          sent(OpKind::kAllReduce) - before.summed};
}

TEST(ShardedModelChecks, CommunicationAloneSendsWhatStepsSend) {
  // Each of four units has two blocks: a weight and a bias of a layer, two vectors of the root.
  // Rank 0 of two keeps one, and sends as much in a gather or a reduction.
  constexpr uint64_t kBlock = 4 * 4096;
  const auto expect = [](const ShardOptions& options, int64_t passes, uint64_t gathers,
                         uint64_t reductions) {
    const PlannedBytes sent = communicate(options, 2, passes);
    EXPECT_EQ(sent.gathered, gathers * kBlock) << passes;
    EXPECT_EQ(sent.reduced, reductions * kBlock) << passes;
    EXPECT_EQ(sent.summed, 0u);
  };
  // Three layers twice and the root once in each pass.
  expect({}, 1, 7, 4);
  expect({}, 3, 21, 12);
  expect({.accumulates = true}, 3, 21, 4);
  expect({.strategy = ShardStrategy::kShardGradOp}, 3, 12, 12);
  expect({.strategy = ShardStrategy::kShardOptimizer}, 3, 4, 12);
  // Parts of a model that two of four ranks keep are summed over the two replicas.
  const PlannedBytes hybrid =
      communicate({.strategy = ShardStrategy::kHybridShard, .shard_size = 2}, 4, 1);
  EXPECT_EQ(hybrid.gathered, 7 * kBlock);
  EXPECT_EQ(hybrid.reduced, 4 * kBlock);
  EXPECT_EQ(hybrid.summed, 4 * kBlock);
}

TEST(ShardedModelChecks, KeepsItsPartsOfParametersAndGradients) {
  constexpr int64_t kBlock = 4 * 4096;
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    EXPECT_EQ(sharded->parameter_bytes(), 4 * kBlock);
    EXPECT_EQ(sharded->gradient_bytes(), 4 * kBlock);
    // Rank 0 keeps the first block of each unit, rank 1 the second.
    std::vector<std::string> names;
    for (const ShardRun& run : sharded->runs(group.rank())) {
      names.push_back(run.parameter.name);
      EXPECT_EQ(run.first, 0);
      EXPECT_EQ(run.end, run.parameter.tensor.numel());
      EXPECT_EQ(run.values.numel(), run.end);
    }
    const bool is_first = group.rank() == 0;
    EXPECT_THAT(names, is_first ? testing::ElementsAre("first", "blocks.0.weight",
                                                       "blocks.1.weight", "blocks.2.weight")
                                : testing::ElementsAre("last", "blocks.0.bias", "blocks.1.bias",
                                                       "blocks.2.bias"));
    for (const ShardRun& run : sharded->runs(1 - group.rank())) {
      EXPECT_FALSE(run.values.defined());
    }
    SmallNet other;
    const auto whole = fully_shard(other, group, {.strategy = ShardStrategy::kShardOptimizer});
    EXPECT_EQ(whole->parameter_bytes(), 8 * kBlock);
    EXPECT_EQ(whole->gradient_bytes(), 4 * kBlock);
  });
}

}  // namespace
}  // namespace lockstep::dist
