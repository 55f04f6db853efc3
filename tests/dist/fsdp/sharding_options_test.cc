// Options of a sharded model that change where its parts lie, or how gradients are summed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/stream.h"
#include "dist/fsdp/fully_shard.h"
#include "dist/fsdp/sharded_model.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

constexpr Device kWithStreams{DeviceType::kHost, 0};

/// A step of `passes` forwards and backwards with samples of this rank's own.
void step_of(ShardedModel& sharded, const SmallNet& net, const ProcessGroup& group, int number,
             int passes = 1) {
  sharded.begin_step();
  sharded.begin_leaf();
  for (int pass = 0; pass < passes; ++pass) {
    sharded.expect_last_backward(pass + 1 == passes);
    net.loss(100 * number + 10 * pass + group.rank()).backward();
  }
  sharded.finish();
}

using Values = std::vector<std::vector<float>>;

/// The gradients of all parameters on rank 0; empty ones on the others.
Values gathered_gradients(const ShardedModel& sharded) {
  Values result;
  for (size_t i = 0; i < sharded.trained_count(); ++i) {
    const Tensor whole = sharded.collect_parts(i, sharded.gradients());
    result.push_back(whole.defined() ? values_of(whole) : std::vector<float>());
  }
  return result;
}

/// Gradients of the unsharded net for a sample, as a sharded one lists them.
Values alone(int sample) {
  const SmallNet net;
  net.loss(sample).backward();
  Values result;
  for (const Tensor& each : net.parameters()) result.push_back(values_of(each.grad()));
  return result;
}

/// What rank 0 of two has after three steps on a device with streams: gradients and parameters.
Values trained(ShardOptions options, int ranks) {
  Values result;
  all_ranks(ranks, [&](ProcessGroup& group) {
    const OwnedStream stream(kWithStreams);
    const StreamGuard guard(stream.get());
    SmallNet net(3, kWithStreams);
    const auto sharded = fully_shard(net, group, options);
    const DeviceType expected = options.cpu_offload ? DeviceType::kCPU : DeviceType::kHost;
    for (const NamedTensor& each : sharded->parameters()) {
      EXPECT_EQ(each.tensor.device().type, expected);
    }
    for (int step = 0; step < 3; ++step) {
      step_of(*sharded, net, group, step);
      const NoGradGuard no_grad;
      for (size_t i = 0; i < sharded->parameters().size(); ++i) {
        EXPECT_EQ(sharded->gradients()[i].device().type, expected);
        sub_(sharded->parameters()[i].tensor, sharded->gradients()[i], 0.1);
      }
    }
    Values gradients = gathered_gradients(*sharded);
    sharded->mark_changed();
    sharded->summon_full_parameters();
    if (group.rank() != 0) return;
    result = std::move(gradients);
    for (const Tensor& each : net.parameters()) result.push_back(values_of(each));
  });
  return result;
}

TEST(ShardingOptions, PartsOnTheHostTrainWithTheSameBits) {
  for (const ShardStrategy strategy :
       {ShardStrategy::kFullShard, ShardStrategy::kShardGradOp, ShardStrategy::kShardOptimizer}) {
    const Values expected = trained({.strategy = strategy}, 2);
    EXPECT_EQ(expected.size(), 16u);
    EXPECT_EQ(trained({.strategy = strategy, .cpu_offload = true}, 2), expected);
  }
  const ShardOptions hybrid{.strategy = ShardStrategy::kHybridShard, .shard_size = 2};
  ShardOptions offloaded = hybrid;
  offloaded.cpu_offload = true;
  EXPECT_EQ(trained(offloaded, 4), trained(hybrid, 4));
}

TEST(ShardingOptions, AnAverageIsTheSumByTheNumberOfRanks) {
  const Values first = alone(0), second = alone(1);
  all_ranks(2, [&](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group, {.average = true});
    step_of(*sharded, net, group, 0);
    const Values got = gathered_gradients(*sharded);
    if (group.rank() != 0) return;
    for (size_t i = 0; i < got.size(); ++i) {
      for (size_t k = 0; k < got[i].size(); ++k) {
        ASSERT_EQ(got[i][k], (first[i][k] + second[i][k]) / 2) << i << ", " << k;
      }
    }
  });
}

TEST(ShardingOptions, GradientsThatAreSentInFewerBytesAreRoundedBeforeAndAfterTheSum) {
  const auto rounded = [](float value) { return static_cast<float>(BFloat16(value)); };
  const Values first = alone(0), second = alone(1), third = alone(10), fourth = alone(11);
  for (const int passes : {1, 2}) {
    all_ranks(2, [&](ProcessGroup& group) {
      SmallNet net;
      const auto sharded = fully_shard(net, group, {.reduce_dtype = DType::kBF16});
      step_of(*sharded, net, group, 0, passes);
      const Values got = gathered_gradients(*sharded);
      if (group.rank() != 0) return;
      for (size_t i = 0; i < got.size(); ++i) {
        for (size_t k = 0; k < got[i].size(); ++k) {
          float expected = rounded(rounded(first[i][k]) + rounded(second[i][k]));
          // Sums of several backwards are added up in the parameters' dtype.
          if (passes == 2) expected += rounded(rounded(third[i][k]) + rounded(fourth[i][k]));
          ASSERT_EQ(got[i][k], expected) << i << ", " << k;
        }
      }
    });
  }
}

TEST(ShardingOptions, SumsAreToldOfOnceEachWhenTheyAreComplete) {
  for (const bool offloads : {false, true}) {
    for (const int size : {0, 2}) {
      all_ranks(size == 0 ? 2 : 4, [&](ProcessGroup& group) {
        const OwnedStream stream(kWithStreams);
        const StreamGuard guard(stream.get());
        SmallNet net(5, kWithStreams);
        const auto sharded = fully_shard(
            net, group,
            {.strategy = size == 0 ? ShardStrategy::kFullShard : ShardStrategy::kHybridShard,
             .shard_size = size,
             .cpu_offload = offloads,
             .accumulates = true});
        std::vector<int> times(sharded->parameters().size());
        std::vector<Tensor> told(times.size());
        sharded->on_reduced(
            [&](std::span<const uint32_t> parts, const std::vector<Tensor>& gradients) {
              EXPECT_EQ(gradients.size(), times.size());
              for (const uint32_t part : parts) {
                ++times[part];
                told[part] = gradients[part].clone();  // without waiting for the stream
              }
            });
        for (int step = 1; step <= 2; ++step) {
          step_of(*sharded, net, group, step, 2);
          for (size_t part = 0; part < times.size(); ++part) {
            EXPECT_EQ(times[part], step);
            EXPECT_EQ(values_of(told[part]), values_of(sharded->gradients()[part]));
          }
        }
      });
    }
  }
}

TEST(ShardingOptions, RanksMayHaveDifferentNumbersOfPasses) {
  const Values first = alone(0), second = alone(1), third = alone(10);
  all_ranks(2, [&](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group, {.accumulates = true, .uneven_passes = true});
    step_of(*sharded, net, group, 3, 2);  // the same number everywhere: learns the order
    sharded->begin_step();
    for (int pass = 0; pass < 2 - group.rank(); ++pass) {
      sharded->expect_last_backward(pass + 1 == 2 - group.rank());
      net.loss(10 * pass + group.rank()).backward();
    }
    if (group.rank() == 1) sharded->pass_without_samples();
    sharded->finish();
    const Values got = gathered_gradients(*sharded);
    if (group.rank() != 0) return;
    for (size_t i = 0; i < got.size(); ++i) {
      for (size_t k = 0; k < got[i].size(); ++k) {
        ASSERT_EQ(got[i][k], (first[i][k] + third[i][k]) + second[i][k]) << i << ", " << k;
      }
    }
  });
}

TEST(ShardingOptions, WaitsForParametersAreTimedByUnit) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto sharded = fully_shard(net, group);
    EXPECT_TRUE(sharded->gather_waits().empty()) << "before the first step";
    net.loss(0);
    step_of(*sharded, net, group, 0);
    ASSERT_EQ(sharded->gather_waits().size(), 4u);
    for (size_t unit = 0; unit < 4; ++unit) {
      const GatherWait& wait = sharded->gather_waits()[unit];
      EXPECT_GT(wait.seconds, 0) << unit;
      EXPECT_LE(wait.late_seconds, wait.seconds);
    }
    EXPECT_GT(sharded->gather_waits()[0].late_seconds, 0) << "the root is gathered when needed";
    EXPECT_EQ(sharded->gather_waits()[2].late_seconds, 0) << "others are gathered ahead";
    EXPECT_EQ(sharded->times().buckets().size(), 4u);
    // Backward reduces the last layer first and the root last.
    EXPECT_THAT(sharded->reduced_units(), testing::ElementsAre(3, 2, 1, 0));
    EXPECT_EQ(sharded->times().buckets()[0].bytes, sharded->unit_bytes(3));
    EXPECT_EQ(sharded->unit_bytes(3), 2 * 4096 * 4);
    EXPECT_EQ(sharded->unit_name(3), "blocks.2");
    EXPECT_EQ(sharded->unit_name(0), "");
  });
}

}  // namespace
}  // namespace lockstep::dist
