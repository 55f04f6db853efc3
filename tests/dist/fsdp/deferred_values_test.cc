// Models whose parameters have no memory until they are sharded.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/tensor/allocator.h"
#include "dist/fsdp/fully_shard.h"
#include "tests/core/expect_error.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

/// Takes the memory of all parameters of `net` away and returns their values.
std::map<const TensorImpl*, std::vector<float>> take_values(const SmallNet& net) {
  std::map<const TensorImpl*, std::vector<float>> values;
  for (const NamedTensor& each : net.named_parameters()) {
    TensorImpl& impl = *each.tensor.impl();
    values[&impl] = values_of(each.tensor);
    auto nothing = make_ref<Storage>(nullptr, each.tensor.nbytes(), kCPU);
    nothing->take_window_away("[test] no values yet.");
    impl.storage = std::move(nothing);
  }
  return values;
}

FillParameter writing(const std::map<const TensorImpl*, std::vector<float>>& values) {
  return [values](const Tensor& parameter, const Tensor& into) {
    const std::vector<float>& from = values.at(parameter.impl());
    std::ranges::copy(from, into.data<float>());
  };
}

void run_one_step(ShardedModel& sharded, const SmallNet& net, int sample) {
  sharded.begin_step();
  net.loss(sample).backward();
  sharded.finish();
}

TEST(DeferredValues, AModelWithoutMemoryIsShardedUnitByUnitWithTheSameBits) {
  for (const ShardStrategy strategy :
       {ShardStrategy::kFullShard, ShardStrategy::kShardGradOp, ShardStrategy::kShardOptimizer}) {
    all_ranks(3, [&](ProcessGroup& group) {
      SmallNet whole, later;
      const auto expected = fully_shard(whole, group, {.strategy = strategy});
      const auto values = take_values(later);
      const auto sharded =
          fully_shard(later, group, {.strategy = strategy, .fill = writing(values)});
      EXPECT_FALSE(sharded->is_summoned());
      run_one_step(*expected, whole, group.rank());
      run_one_step(*sharded, later, group.rank());
      ASSERT_EQ(sharded->parameters().size(), expected->parameters().size());
      for (size_t i = 0; i < sharded->parameters().size(); ++i) {
        EXPECT_EQ(values_of(sharded->parameters()[i].tensor),
                  values_of(expected->parameters()[i].tensor));
        EXPECT_EQ(values_of(sharded->gradients()[i]), values_of(expected->gradients()[i]));
      }
    });
  }
}

TEST(DeferredValues, RanksWithAndWithoutMemoryShardAtOnce) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet whole, mixed;
    const auto expected = fully_shard(whole, group);
    ShardOptions options;
    if (group.rank() == 1) options.fill = writing(take_values(mixed));
    const auto sharded = fully_shard(mixed, group, options);
    EXPECT_FALSE(sharded->is_summoned());
    run_one_step(*expected, whole, group.rank());
    run_one_step(*sharded, mixed, group.rank());
    for (size_t i = 0; i < sharded->gradients().size(); ++i) {
      EXPECT_EQ(values_of(sharded->gradients()[i]), values_of(expected->gradients()[i]));
    }
  });
}

TEST(DeferredValues, AParameterWithoutValuesIsRefusedByNameUntilItsRunsAreFilled) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallNet net;
    const auto values = take_values(net);
    const auto sharded = fully_shard(net, group);
    const std::string first = net.named_parameters()[0].name;
    expect_error<DistError>([&] { sharded->begin_step(); }, "has no values yet", first);
    const NoGradGuard no_grad;
    expect_error<DistError>([&] { net.loss(0); }, "has no values yet", first);

    int64_t elements = 0;
    for (int rank = 0; rank < group.size(); ++rank) {
      for (const ShardRun& run : sharded->runs(rank)) {
        elements += run.end - run.first;
        EXPECT_EQ(run.values.defined(), rank == group.rank());
        if (!run.values.defined()) continue;
        const std::vector<float>& from = values.at(run.parameter.tensor.impl());
        std::copy(from.begin() + run.first, from.begin() + run.end, run.values.data<float>());
      }
    }
    int64_t all = 0;
    for (const auto& [parameter, from] : values) all += std::ssize(from);
    EXPECT_EQ(elements, all);
    sharded->mark_changed();
    const SmallNet whole;
    EXPECT_EQ(values_of(net.loss(0)), values_of(whole.loss(0)));
  });
}

}  // namespace
}  // namespace lockstep::dist
