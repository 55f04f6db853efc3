// parallel.strategy: models that are spread over the ranks train as one rank does.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

const char* const kStrategies[] = {"FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER"};

std::string bitwise(const std::string& strategy, const std::string& more) {
  return "reproducibility: BITWISE parallel { strategy: " + strategy + " } " + more;
}

TEST(Sharding, StrategyAndNumberOfRanksChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  for (
      const char* more : bitwise_runs_and(
          {"train { batch_size: 8 micro_batch_size: 1 } model { checkpoint_every: 1 gpt2 { layers: "
           "3 } }",
           "train { batch_size: 8 micro_batch_size: 1 } model { checkpoint_every: 2 gpt2 { layers: "
           "4 } }",
           // Larger than a block of shards, with a classifier of its own.
           "train { batch_size: 8 micro_batch_size: 1 } model { llama { vocab_size: 300 "
           "context_length: 16 layers: 2 heads: 2 kv_heads: 1 width: 64 } }"})) {
    const Trace one = trace(tiny_run(folder, bitwise("DDP", more)), 4);
    for (const char* strategy : kStrategies) {
      const config::RunConfig config = tiny_run(folder, bitwise(strategy, more));
      for (const int ranks : {2, 3, 4, 6, 8}) {
        for (const Trace& each : traces(config, ranks, 4)) {
          EXPECT_EQ(each, one) << strategy << ", " << more << ", " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(Sharding, OnADeviceWithStreamsTheBitsAreThoseOfTheCpu) {
  const TemporaryDirectory folder;
  const std::string more = "train { batch_size: 8 micro_batch_size: 1 }";
  const Trace one = trace(tiny_run(folder, bitwise("DDP", more)), 4);
  for (const char* strategy : kStrategies) {
    const config::RunConfig config =
        tiny_run(folder, bitwise(strategy, more + " device: \"host:0\""));
    for (const int ranks : {2, 3}) {
      for (const Trace& each : traces(config, ranks, 4)) {
        EXPECT_EQ(each, one) << strategy << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(Sharding, WithoutBitwiseLossesAreThoseOfOneRankButForRounding) {
  const TemporaryDirectory folder;
  for (const char* more :
       {"train { batch_size: 12 micro_batch_size: 1 leaves: 4 } model { gpt2 { dropout: 0 } }",
        "train { batch_size: 8 micro_batch_size: 1 } model { gpt2 { dropout: 0 } } precision: "
        "F16_MIXED"}) {
    const Trace one = trace(tiny_run(folder, more), 5);
    for (const char* strategy : kStrategies) {
      const std::string text = std::string("parallel { strategy: ") + strategy + " } " + more;
      for (const int ranks : {2, 4}) {
        const std::vector<Trace> all = traces(tiny_run(folder, text), ranks, 5);
        for (size_t step = 0; step < one.losses.size(); ++step) {
          EXPECT_NEAR(all[0].losses[step], one.losses[step], 2e-3) << strategy << more;
        }
        for (const Trace& each : all) EXPECT_EQ(each, all[0]) << strategy << more;
      }
    }
  }
}

TEST(Sharding, EvaluationsBetweenStepsChangeNothing) {
  const TemporaryDirectory folder;
  const std::string more = "train { batch_size: 8 micro_batch_size: 1 }";
  for (const char* strategy : kStrategies) {
    const config::RunConfig config = tiny_run(folder, bitwise(strategy, more));
    const Trace undisturbed = traces(config, 2, 4)[0];
    std::vector<double> losses;
    for (const Trace& each : trained_on_ranks(config, 2, [&](Trainer& trainer) {
           Trace result;
           for (int i = 0; i < 4; ++i) {
             (void)trainer.evaluate(2);
             const StepResult step = trainer.step();
             result.losses.push_back(step.loss);
             result.norms.push_back(step.grad_norm);
             trainer.gather_weights();
           }
           result.weights = undisturbed.weights;
           return result;
         })) {
      EXPECT_EQ(each, undisturbed) << strategy;
    }
  }
}

TEST(Sharding, ARunGoesOnWithAnotherStrategyAndOnAnotherNumberOfRanks) {
  const std::string more =
      "train { batch_size: 8 micro_batch_size: 1 steps: 9 } checkpoint { every_steps: 2 }";
  const TemporaryDirectory whole;
  rethrow_first(run_on_ranks(tiny_run(whole, bitwise("DDP", more)), whole, 2));
  const std::string expected = weights_of(whole);
  ASSERT_FALSE(expected.empty());

  const TemporaryDirectory parts;
  for (const auto& [strategy, ranks] : {std::pair("FULL_SHARD", 4), std::pair("SHARD_GRAD_OP", 3),
                                        std::pair("SHARD_OPTIMIZER", 2)}) {
    std::atomic<int> asked = 0;
    const auto errors = run_on_ranks(tiny_run(parts, bitwise(strategy, more)), parts, ranks,
                                     [&] { return ++asked >= 3; });
    expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  }
  rethrow_first(run_on_ranks(tiny_run(parts, bitwise("DDP", more)), parts, 1));
  EXPECT_TRUE(weights_of(parts) == expected);
}

TEST(Sharding, ARunEndsWithTheWeightsOfOneRank) {
  const std::string more =
      "train { batch_size: 8 micro_batch_size: 1 steps: 6 eval_every: 2 sample_every: 3 "
      "sample_bytes: 8 } checkpoint { every_steps: 2 }";
  const TemporaryDirectory plain;
  rethrow_first(run_on_ranks(tiny_run(plain, bitwise("DDP", more)), plain, 1));
  for (const char* strategy : kStrategies) {
    const TemporaryDirectory run;
    rethrow_first(run_on_ranks(tiny_run(run, bitwise(strategy, more)), run, 3));
    EXPECT_TRUE(weights_of(run) == weights_of(plain)) << strategy;
  }
}

TEST(Sharding, OptionsOfDataParallelTrainingAreRefusedByName) {
  const TemporaryDirectory folder;
  for (const auto& [more, named] :
       {std::pair("parallel { strategy: FULL_SHARD bf16_compress {} }", "communication hook"),
        std::pair("parallel { strategy: FULL_SHARD } optimizer { optimizer_in_backward: true "
                  "clip_grad_norm: 0 }",
                  "optimizer_in_backward"),
        std::pair("parallel { strategy: SHARD_OPTIMIZER } optimizer { muon {} }", "muon")}) {
    const config::RunConfig config = tiny_run(folder, more);
    const auto errors = dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
      Trainer trainer = Trainer::create(config, build_task(config), &group);
    });
    for (const std::exception_ptr& error : errors) {
      expect_error<ConfigError>([&] { std::rethrow_exception(error); }, "cannot be combined",
                                named);
    }
  }
}

}  // namespace
}  // namespace lockstep::train
