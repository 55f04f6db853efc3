// Runs of several ranks whose bits depend on them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/train/bisect/recorded_runs.h"
#include "train/bisect/bisect.h"
#include "train/bisect/replay.h"

namespace lockstep::train {
namespace {

class BisectRanks : public testing::Test {
 protected:
  RecordedRun record(const std::string& name, int ranks, const std::string& more = "",
                     const std::vector<int>& hosts = {}) const {
    return recorded_on(ranks, folder_, name, six_steps(folder_, more), hosts);
  }
  /// With batches of `samples`, in micro-batches of `size`.
  RecordedRun record_batches(const std::string& name, int ranks, int64_t samples, int64_t size,
                             const std::vector<int>& hosts = {}) const {
    config::RunConfig config = six_steps(folder_);
    config.mutable_train()->set_batch_size(samples);
    config.mutable_train()->set_micro_batch_size(size);
    return recorded_on(ranks, folder_, name, config, hosts);
  }
  std::string refusal(const RecordedRun& a, const RecordedRun& b) const {
    return message_of<ConfigError>([&] { (void)bisect(a, b, {.replay_equal = true}); });
  }

  TemporaryDirectory folder_;
};

TEST_F(BisectRanks, AreReplayedByAsManyWithTheBitsOfTheRun) {
  int number = 0;
  for (const auto& [ranks, more] :
       {std::pair(2, ""), std::pair(2, "parallel { bf16_compress {} }"),
        std::pair(2, "parallel { strategy: FULL_SHARD }"),
        std::pair(2, "parallel { strategy: SHARD_GRAD_OP } precision: BF16_MIXED"),
        std::pair(2, "parallel { strategy: SHARD_OPTIMIZER bf16_reduce: true }"),
        std::pair(4, "parallel { strategy: HYBRID_SHARD shard_size: 2 }"),
        std::pair(2, "device: \"host:0\""), std::pair(2, "audit { every_steps: 2 }")}) {
    const std::string name = "a" + std::to_string(++number);
    const RecordedRun a = record(name, ranks, more), b = record(name + "b", ranks, more);
    const Bisection result = bisect(a, b, {.replay_equal = true});
    EXPECT_EQ(result.replayed, 6) << more;
    EXPECT_TRUE(result.same()) << more << "\n" << describe(result, a, b);
  }
}

TEST_F(BisectRanks, AFaultIsNamedWithItsRank) {
  int number = 0;
  for (const char* more : {"", "parallel { strategy: FULL_SHARD }"}) {
    const std::string name = "a" + std::to_string(++number);
    const RecordedRun a = record(name, 2, more);
    const RecordedRun b =
        record(name + "b", 2,
               more + flipped("step=4,micro_batch=3,operator=stream_norm,call=1,element=17,bit=0"));
    const Bisection result = bisect(a, b, {.replay_equal = true});
    ASSERT_TRUE(result.found) << more << describe(result, a, b);
    EXPECT_EQ(result.found->part, (StepPart{3, 3})) << more;
    EXPECT_EQ(result.found->rank, 1) << more;
    EXPECT_EQ(result.found->operator_name, "stream_norm") << more;
    EXPECT_TRUE(result.found->inputs.empty()) << more;
    ASSERT_TRUE(result.found->element) << more;
    EXPECT_EQ(result.found->element->element, 17) << more;
    EXPECT_TRUE(result.unrepeated.empty()) << more << describe(result, a, b);
    EXPECT_TRUE(says(describe(result, a, b), "step 4, rank 1, micro-batch 3 (of 0 to 3), leaf"));
  }
}

TEST_F(BisectRanks, ThatAreOnSeveralHostsAreReplayedSo) {
  const std::vector<int> hosts = {0, 1, 1};
  const RecordedRun a = record_batches("a", 3, 12, 2, hosts);
  const RecordedRun b = record_batches("b", 3, 12, 2, hosts);
  EXPECT_EQ(a.hosts, hosts);
  const Bisection result = bisect(a, b, {.replay_equal = true});
  EXPECT_TRUE(result.same()) << describe(result, a, b);
  RecordedRun on_one = a;
  on_one.hosts.clear();
  EXPECT_FALSE(bisect(on_one, on_one, {.replay_equal = true}).unrepeated.empty())
      << "hosts decide the order of sums";
  EXPECT_TRUE(says(refusal(a, on_one), "on hosts 0, 1, 1, and"));
}

TEST_F(BisectRanks, BeginFromTheWeightsThatTheirConfigNames) {
  const RecordedRun first = record("first", 1);
  int number = 0;
  for (const std::string strategy : {"DDP", "FULL_SHARD"}) {
    const std::string more = fmt::format("model {{ weights: \"{}\" }} parallel {{ strategy: {} }}",
                                         (folder_ / "first/model.safetensors").string(), strategy);
    const std::string name = "a" + std::to_string(++number);
    const RecordedRun a = record(name, 2, more), b = record(name + "b", 2, more);
    EXPECT_NE(*a.steps[0].loss, *first.steps[0].loss);
    const Bisection result = bisect(a, b, {.replay_equal = true});
    EXPECT_TRUE(result.same()) << more << "\n" << describe(result, a, b);
    EXPECT_EQ(result.from_step, 0);
  }
}

TEST_F(BisectRanks, OfAnotherNumberNeedATolerance) {
  const RecordedRun a = record("a", 1), b = record("b", 2);
  const RecordedRun sharded = record("c", 2, "parallel { strategy: FULL_SHARD }");
  EXPECT_TRUE(says(refusal(a, b), "was computed by one rank, and "));
  EXPECT_TRUE(says(refusal(a, b), "by 2 ranks with DDP: without reproducibility: BITWISE"));
  EXPECT_TRUE(says(refusal(b, sharded), "2 ranks with FULL_SHARD"));
  for (const auto& [x, y] :
       {std::pair(&a, &b), std::pair(&b, &a), std::pair(&a, &sharded), std::pair(&sharded, &b)}) {
    const Bisection result = bisect(*x, *y, {.replay_equal = true, .tolerance = 1e-4});
    EXPECT_TRUE(result.same()) << describe(result, *x, *y);
    EXPECT_GT(result.compared, 100);
  }
}

TEST_F(BisectRanks, OfAnotherNumberAreComparedBeyondATolerance) {
  const RecordedRun a = record("a", 1);
  const RecordedRun b =
      record("b", 2, flipped("step=3,micro_batch=3,operator=addmm,call=2,element=9,bit=30"));
  const Bisection result = bisect(a, b, {.tolerance = 1e-4});
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->part, (StepPart{2, 3}));
  EXPECT_EQ(result.found->operator_name, "addmm");
  EXPECT_EQ(result.found->call, 2);
  EXPECT_EQ(result.found->element->element, 9);
}

TEST_F(BisectRanks, WithOtherMicroBatchesAreRefused) {
  const RecordedRun a = record_batches("a", 1, 8, 8), b = record_batches("b", 2, 8, 8);
  EXPECT_TRUE(says(message_of<ConfigError>(
                       [&] { (void)bisect(a, b, {.replay_equal = true, .tolerance = 1e-4}); }),
                   "have 8 samples, of "));
}

TEST_F(BisectRanks, ThatThreadsCannotRepeatAreRefused) {
  RecordedRun run = record("a", 2);
  const config::RunConfig config = run.config();
  const auto reason = [&](const auto& change) {
    config::RunConfig changed = config;
    change(changed);
    run.config_text = config::to_text(changed);
    return message_of<ConfigError>([&] { const Replay replay(run, run); });
  };
  using Config = config::RunConfig;
  const auto of_parallel = [&](const auto& change) {
    return reason([&](Config& each) { change(*each.mutable_parallel()); });
  };
  EXPECT_TRUE(says(of_parallel([](auto& each) { each.mutable_elastic(); }),
                   "their number may have changed"));
  EXPECT_TRUE(says(of_parallel([](auto& each) { each.mutable_local_sgd()->set_inner_steps(2); }),
                   "steps of their own"));
  EXPECT_TRUE(says(of_parallel([](auto& each) { each.mutable_power_sgd()->set_rank(1); }),
                   "that no checkpoint has"));
  EXPECT_TRUE(says(of_parallel([](auto& each) { each.set_sync_batch_norm(true); }),
                   "those of the other ranks"));
  EXPECT_TRUE(says(reason([](Config& each) { each.set_device("cuda:0"); }), "an order of its own"));
  EXPECT_TRUE(says(reason([](Config& each) {
                     each.mutable_optimizer()->set_optimizer_in_backward(true);
                     each.mutable_optimizer()->set_clip_grad_norm(0);
                     each.mutable_train()->set_non_finite(config::TrainConfig::STOP);
                   }),
                   "the time of messages"));
  run.always_so = false;
  EXPECT_TRUE(says(reason([](Config&) {}),
                   "was computed by 2 ranks, its bits depend on them, and they cannot "
                   "be computed again in one process: its starts had other numbers"));
}

TEST_F(BisectRanks, ARunThatWentOnWithOthersIsKnown) {
  const config::RunConfig config = six_steps(folder_);
  EXPECT_TRUE(recorded_on(2, folder_, "run", config).always_so);
  config::RunConfig longer = config;
  longer.mutable_train()->set_steps(8);
  const RecordedRun run = recorded_on(4, folder_, "run", longer);
  EXPECT_EQ(run.ranks, 4);
  EXPECT_FALSE(run.always_so);
}

}  // namespace
}  // namespace lockstep::train
