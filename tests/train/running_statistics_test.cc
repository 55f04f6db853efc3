// Batch norm's running statistics over ranks equal those of one rank that computes whole steps.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "tests/train/table_run.h"
#include "train/rank_statistics.h"

namespace lockstep::train {
namespace {

/// A small ResNet with batch norm and several buckets, with `more` merged into its config.
config::RunConfig resnet_run(const TemporaryDirectory& folder, const std::string& more) {
  return tiny_run(folder, tiny_resnet(folder, "1, 1") +
                              "parallel { bucket_mib: 0.005 first_bucket_mib: 0.002 } " + more);
}

/// resnet_run with BITWISE and leaves for 8 ranks; `train` is added to its TrainConfig.
config::RunConfig bitwise_run(const TemporaryDirectory& folder, const std::string& more = "",
                              const std::string& train = "") {
  return resnet_run(
      folder, fmt::format("reproducibility: BITWISE train {{ batch_size: 32 micro_batch_size: 2 "
                          "leaves: 8 {} }} {}",
                          train, more));
}

std::string buffers_of(Trainer& trainer) {
  std::string bytes;
  for (const nn::NamedParameter& buffer : trainer.task().model().named_buffers()) {
    const Tensor here = buffer.tensor.to(kCPU);
    bytes.append(static_cast<const char*>(here.data()), here.nbytes());
  }
  return bytes;
}

/// Losses, norms and weights of a run, its buffers after every step, and a final evaluation.
struct WholeTrace {
  Trace trace;
  std::vector<std::string> buffers;
  Evaluation held_out;
};

WholeTrace whole_trace(Trainer& trainer, int steps) {
  WholeTrace result;
  for (int i = 0; i < steps; ++i) {
    const Trace step = trace(trainer, 1);
    result.trace.losses.push_back(step.losses[0]);
    result.trace.norms.push_back(step.norms[0]);
    result.trace.weights = step.weights;
    result.buffers.push_back(buffers_of(trainer));
  }
  result.held_out = *trainer.evaluate(0);
  return result;
}

WholeTrace trace_alone(const config::RunConfig& config, int steps) {
  Trainer trainer = Trainer::create(config);
  return whole_trace(trainer, steps);
}

std::vector<WholeTrace> traces_on_ranks(const config::RunConfig& config, int size, int steps) {
  return trained_on_ranks(config, size,
                          [&](Trainer& trainer) { return whole_trace(trainer, steps); });
}

void expect_same(const WholeTrace& one, const WholeTrace& other, const std::string& what) {
  EXPECT_EQ(one.trace, other.trace) << what;
  EXPECT_TRUE(one.buffers == other.buffers) << what << ": other running statistics";
  EXPECT_EQ(one.held_out.loss, other.held_out.loss) << what;
  EXPECT_EQ(one.held_out.accuracy, other.held_out.accuracy) << what;
  EXPECT_EQ(one.held_out.targets, other.held_out.targets) << what;
}

TEST(RunningStatistics, HaveTheSameBitsOnAnyNumberOfRanks) {
  const TemporaryDirectory folder;
  for (const char* more : {"", "precision: BF16_MIXED", "device: \"host:0\"", "recomputing"}) {
    const bool recomputes = more == std::string("recomputing");
    config::RunConfig config = bitwise_run(folder, recomputes ? "" : more);
    if (recomputes) config.mutable_model()->set_recompute(config::ModelConfig::BLOCK);
    const WholeTrace one = trace_alone(config, 3);
    EXPECT_NE(one.buffers[1], one.buffers[0]);
    for (const int ranks : {2, 3, 4, 8}) {
      for (const WholeTrace& each : traces_on_ranks(config, ranks, 3)) {
        expect_same(one, each, fmt::format("{}, {} ranks", more, ranks));
      }
    }
  }
}

TEST(RunningStatistics, OfOneRankAreThoseOfAnOrdinaryRun) {
  const TemporaryDirectory folder;
  const config::RunConfig config = bitwise_run(folder);
  config::RunConfig ordinary = config;
  ordinary.clear_reproducibility();
  // The weights are still equal in the first step, so the statistics must be equal too.
  EXPECT_TRUE(trace_alone(ordinary, 1).buffers == trace_alone(config, 1).buffers);
}

TEST(RunningStatistics, OfTheFirstStepAreThoseOfOneRankWithoutBitwiseToo) {
  const TemporaryDirectory folder;
  // The three ranks have 2, 3 and 3 leaves.
  const config::RunConfig config =
      resnet_run(folder, "train { batch_size: 32 micro_batch_size: 2 leaves: 8 }");
  const WholeTrace one = trace_alone(config, 1);
  const std::vector<WholeTrace> first = traces_on_ranks(config, 3, 1);
  for (const WholeTrace& each : first) EXPECT_TRUE(each.buffers == one.buffers);
  const std::vector<WholeTrace> more = traces_on_ranks(config, 3, 4);
  for (const WholeTrace& each : more) expect_same(each, more[0], "a rank differs");
}

TEST(RunningStatistics, OfRanksThatGetOtherLeavesInEachStepAreThoseOfOneRank) {
  const TemporaryDirectory folder;
  const config::RunConfig config = bitwise_run(folder);
  const std::vector<std::vector<int64_t>> deals = {{1, 6, 1}, {4, 1, 3}, {2, 3, 3}, {1, 1, 6}};
  const WholeTrace one = trace_alone(config, static_cast<int>(deals.size()));
  rethrow_first(dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    Trainer trainer =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
    for (size_t step = 0; step < deals.size(); ++step) {
      trainer.deal_out(dist::LeafDeal::of_counts(deals[step]));
      trainer.step();
      EXPECT_TRUE(buffers_of(trainer) == one.buffers[step]) << "step " << step;
    }
  }));
}

TEST(RunningStatistics, CountTheMicroBatchesOfAllRanks) {
  const TemporaryDirectory folder;
  // With more ranks than leaves, ranks use smaller micro-batches.
  const config::RunConfig config =
      resnet_run(folder, "train { batch_size: 24 micro_batch_size: 12 leaves: 2 }");
  rethrow_first(dist::run_thread_ranks(4, [&](dist::ProcessGroup& group) {
    Trainer trainer =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
    for (int i = 0; i < 3; ++i) trainer.step();
    for (const nn::NamedParameter& buffer : trainer.task().model().named_buffers()) {
      if (!buffer.name.ends_with("num_batches_tracked")) continue;
      EXPECT_EQ(buffer.tensor.item<int64_t>(), 3 * 4) << buffer.name;
    }
  }));
}

TEST(RunningStatistics, AStepThatIsNotFiniteMovesThemAsOnOneRank) {
  const TemporaryDirectory folder;
  const config::RunConfig config = bitwise_run(folder);
  const auto spoilt_step = [&](Trainer& trainer) {
    // A bias of the last layer for which only the losses are not finite.
    trainer.task().model().parameters().back().detach().fill_(1e38);
    trainer.task().model().parameters().back().detach().slice(0, 0, 1).fill_(-3e38);
    const StepResult result = trainer.step();
    EXPECT_FALSE(result.outcome.finite);
    return buffers_of(trainer);
  };
  Trainer trainer = Trainer::create(config);
  const std::string before = buffers_of(trainer);
  const std::string one = spoilt_step(trainer);
  EXPECT_NE(one, before);
  rethrow_first(dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    Trainer of_rank =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
    EXPECT_TRUE(spoilt_step(of_rank) == one);
  }));
}

TEST(RunningStatistics, ARunGoesOnOnOtherNumbersOfRanksWithTheSameBits) {
  const TemporaryDirectory whole;
  const std::string every = "checkpoint { every_steps: 2 }", train = "steps: 9 eval_every: 4";
  rethrow_first(run_on_ranks(bitwise_run(whole, every, train), whole, 2));
  const std::string expected = weights_of(whole);
  ASSERT_NE(expected.find("running_var"), std::string::npos) << "the file holds buffers, too";

  const TemporaryDirectory parts;
  const config::RunConfig config = bitwise_run(parts, every, train);
  for (const int ranks : {4, 3}) {
    std::atomic<int> asked = 0;
    const auto errors = run_on_ranks(config, parts, ranks, [&] { return ++asked >= 3; });
    expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  }
  rethrow_first(run_on_ranks(config, parts, 1));
  EXPECT_TRUE(weights_of(parts) == expected) << "4, then 3, then 1 rank";
}

/// Moves its running statistic towards the argument of each call.
class Tracker : public nn::Module {
 public:
  Tracker() : running(register_buffer("running", zeros({1}))) {}
  void forward(double found) const {
    statistics_log()->move(running, full({1}, found, DType::kF64), 0.5);
  }

  Tensor running;
};

class Trackers : public nn::Module {
 public:
  Trackers() {
    register_module("a", a);
    register_module("b", b);
  }
  Tracker a, b;
};

TEST(RankStatistics, AreAppliedInTheOrderOfMicroBatches) {
  for (const int size : {2, 3}) {
    rethrow_first(dist::run_thread_ranks(size, [&](dist::ProcessGroup& group) {
      Trackers model;
      std::vector<int64_t> counts{1, 3};
      if (size == 3) counts = {1, 1, 2};
      RankStatistics statistics(model, &group, counts);
      const int first = group.rank() == 0 ? 0 : group.rank() == 1 ? 1 : 2;
      for (int step = 0; step < 2; ++step) {
        for (int64_t i = 0; i < counts[static_cast<size_t>(group.rank())]; ++i) {
          const auto number = static_cast<double>(first + i);
          statistics.observe([&] {
            model.a.forward(number);
            model.b.forward(-0.0);
            return 0;
          });
        }
        statistics.send();
        EXPECT_EQ(model.a.running.item<float>(), step == 0 ? 0.0F : 2.125F);
        statistics.apply();
      }
      // 0 -> 0, 0.5, 1.25, 2.125 in the first step; the second starts from there.
      EXPECT_EQ(model.a.running.item<float>(), 2.125F / 16 + 2.125F);
    }));
  }
}

TEST(RankStatistics, PassesThatDoNotFitAreRefused) {
  rethrow_first(dist::run_thread_ranks(2, [](dist::ProcessGroup& group) {
    Trackers model;
    RankStatistics twice(model, &group, {1, 1});
    expect_error<ConfigError>(
        [&] { twice.observe([&] { return model.a.forward(1), model.a.forward(2), 0; }); },
        "called twice in one forward pass");
    RankStatistics other(model, &group, {2, 2});
    other.observe([&] { return model.a.forward(1), 0; });
    expect_error<ConfigError>([&] { other.observe([&] { return model.b.forward(1), 0; }); },
                              "other running statistics");
  }));
}

}  // namespace
}  // namespace lockstep::train
