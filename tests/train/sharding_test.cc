// parallel.strategy: models that are spread over the ranks train as one rank does.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/run/plan.h"
#include "train/weights/hugging_face_folder.h"

namespace lockstep::train {
namespace {

const char* const kStrategies[] = {"FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER"};

std::string bitwise(const std::string& strategy, const std::string& more) {
  return "reproducibility: BITWISE parallel { strategy: " + strategy + " } " + more;
}

constexpr int kRankCounts[] = {2, 3, 4, 6, 8};

TEST(Sharding, StrategyAndNumberOfRanksChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  const std::vector<const char*> runs = bitwise_runs_and(
      {"train { batch_size: 8 micro_batch_size: 1 } model { checkpoint_every: 1 gpt2 { layers: "
       "3 } }",
       "train { batch_size: 8 micro_batch_size: 1 } model { checkpoint_every: 2 gpt2 { layers: "
       "4 } }",
       // Larger than a block of shards, with a classifier of its own.
       "train { batch_size: 8 micro_batch_size: 1 } model { llama { vocab_size: 300 "
       "context_length: 16 layers: 2 heads: 2 kv_heads: 1 width: 64 } }"});
  for (size_t run = 0; run < runs.size(); ++run) {
    const char* const more = runs[run];
    const Trace one = trace(tiny_run(folder, bitwise("DDP", more)), 3);
    for (size_t strategy = 0; strategy < std::size(kStrategies); ++strategy) {
      const config::RunConfig config = tiny_run(folder, bitwise(kStrategies[strategy], more));
      // The first run is trained with every strategy on every number of ranks, the others so that
      // each pair of a run, a strategy and a number of ranks comes.
      for (size_t count = 0; count < std::size(kRankCounts); ++count) {
        const size_t turn = (count + run + strategy) % std::size(kRankCounts);
        if (run > 0 && turn != 0 && turn != 2) continue;
        for (const Trace& each : traces(config, kRankCounts[count], 3)) {
          EXPECT_EQ(each, one) << kStrategies[strategy] << ", " << more << ", "
                               << kRankCounts[count] << " ranks";
        }
      }
    }
  }
}

/// Numbers of ranks, and of those that keep a model together.
const std::pair<int, int> kHybrids[] = {{4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}, {4, 4}, {3, 1}};

std::string hybrid(int shard_size, const std::string& more) {
  return "reproducibility: BITWISE parallel { strategy: HYBRID_SHARD shard_size: " +
         std::to_string(shard_size) + " } " + more;
}

TEST(Sharding, GroupsOfRanksThatAreReplicasChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  const std::vector<const char*> runs = bitwise_runs_and(
      {"train { batch_size: 8 micro_batch_size: 1 } model { llama { vocab_size: 300 "
       "context_length: 16 layers: 2 heads: 2 kv_heads: 1 width: 64 } }"});
  for (size_t run = 0; run < runs.size(); ++run) {
    const char* const more = runs[run];
    const Trace one = trace(tiny_run(folder, bitwise("DDP", more)), 3);
    for (size_t i = 0; i < std::size(kHybrids); ++i) {
      // The first run is trained in groups of all kinds, each other one in half of them.
      if (run > 0 && (i + run) % 2 != 0) continue;
      const auto& [ranks, size] = kHybrids[i];
      for (const Trace& each : traces(tiny_run(folder, hybrid(size, more)), ranks, 3)) {
        EXPECT_EQ(each, one) << more << ", " << ranks << " ranks in groups of " << size;
      }
    }
  }
}

TEST(Sharding, GroupsOnADeviceWithStreamsHaveTheBitsOfTheCpu) {
  const TemporaryDirectory folder;
  const std::string more = "train { batch_size: 8 micro_batch_size: 1 }";
  const Trace one = trace(tiny_run(folder, bitwise("DDP", more)), 4);
  for (const Trace& each :
       traces(tiny_run(folder, hybrid(2, more + " device: \"host:0\"")), 4, 4)) {
    EXPECT_EQ(each, one);
  }
}

/// A model of which each of up to 6 ranks keeps more than a block's vectors.
std::string mixed(const std::string& train = "", int vocabulary = 300) {
  return "precision: BF16_MIXED train { batch_size: 8 micro_batch_size: 1 " + train +
         " } model { checkpoint_every: 1 llama { vocab_size: " + std::to_string(vocabulary) +
         " context_length: 16 layers: 3 heads: 2 kv_heads: 1 width: 64 hidden_width: 192 } } ";
}

TEST(Sharding, GatheringTheCastsOfAutocastChangesNoBitAndSendsHalf) {
  const TemporaryDirectory folder;
  const Trace one = trace(tiny_run(folder, bitwise("DDP", mixed())), 4);
  const auto sent = [&](const std::string& text) {
    return trained_on_ranks(tiny_run(folder, text), 2, [](Trainer& trainer) {
      (void)trainer.evaluate(1);
      trainer.step();
      return trainer.step().sent_bytes;
    })[1];
  };
  for (const char* strategy : {"FULL_SHARD", "SHARD_GRAD_OP"}) {
    for (const int ranks : {2, 3, 4, 6}) {
      for (const Trace& each : traces(tiny_run(folder, bitwise(strategy, mixed())), ranks, 4)) {
        EXPECT_EQ(each, one) << strategy << ", " << ranks << " ranks";
      }
    }
    const std::string text = std::string("parallel { strategy: ") + strategy;
    const auto in_half = static_cast<double>(sent(text + " } " + mixed()));
    const auto whole = static_cast<double>(sent(text + " gather_dtype: PARAMETER } " + mixed()));
    EXPECT_LT(in_half, 0.85 * whole) << strategy;
  }
  for (const Trace& each : traces(tiny_run(folder, hybrid(2, mixed())), 4, 4)) EXPECT_EQ(each, one);
}

TEST(Sharding, GatheredCastsAreEvaluatedSampledAndResumed) {
  const std::string config = mixed("steps: 6 eval_every: 2 sample_every: 3 sample_bytes: 8", 256) +
                             "checkpoint { every_steps: 2 }";
  const TemporaryDirectory plain;
  rethrow_first(run_on_ranks(tiny_run(plain, bitwise("DDP", config)), plain, 1));
  const TemporaryDirectory run;
  std::atomic<int> asked = 0;
  (void)run_on_ranks(tiny_run(run, bitwise("FULL_SHARD", config)), run, 2,
                     [&] { return ++asked >= 3; });
  rethrow_first(run_on_ranks(tiny_run(run, bitwise("FULL_SHARD", config)), run, 3));
  EXPECT_TRUE(weights_of(run) == weights_of(plain));
}

TEST(Sharding, GradientsSentInBf16GiveLossesThatDifferByRounding) {
  const TemporaryDirectory folder;
  const std::string more =
      "train { batch_size: 8 micro_batch_size: 1 } model { gpt2 { dropout: 0 } }";
  const Trace one = trace(tiny_run(folder, more), 5);
  for (const char* strategy :
       {"FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER", "HYBRID_SHARD shard_size: 2"}) {
    const std::string text =
        std::string("parallel { bf16_reduce: true strategy: ") + strategy + " } " + more;
    for (const Trace& each : traces(tiny_run(folder, text), 4, 5)) {
      for (size_t step = 0; step < one.losses.size(); ++step) {
        EXPECT_NEAR(each.losses[step], one.losses[step], 2e-2) << strategy;
      }
    }
  }
}

TEST(Sharding, GroupsThatDoNotDivideTheRanksAreRefused) {
  const TemporaryDirectory folder;
  for (const auto& [text, named] :
       {std::pair("parallel { strategy: HYBRID_SHARD shard_size: 2 }", "divisor of the 3 ranks"),
        std::pair("parallel { strategy: FULL_SHARD shard_size: 3 }", "with HYBRID_SHARD alone")}) {
    const config::RunConfig config =
        tiny_run(folder, std::string(text) + " train { batch_size: 9 }");
    const auto errors = dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
      Trainer trainer = Trainer::create(config, build_task(config), &group);
    });
    for (const std::exception_ptr& error : errors) {
      expect_error<ConfigError>([&] { std::rethrow_exception(error); }, "parallel.shard_size",
                                named);
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

/// `config` on a device with streams, its state on the host.
config::RunConfig offloaded(config::RunConfig config) {
  config.set_device("host:0");
  config.mutable_parallel()->set_cpu_offload(true);
  return config;
}

TEST(Sharding, OffloadToTheHostChangesNoBit) {
  const TemporaryDirectory folder;
  const std::string more = "train { batch_size: 8 micro_batch_size: 1 } ";
  const Trace one = trace(tiny_run(folder, bitwise("DDP", more)), 4);
  const Trace one_mixed = trace(tiny_run(folder, bitwise("DDP", mixed())), 4);
  for (const char* strategy : kStrategies) {
    for (const Trace& each : traces(offloaded(tiny_run(folder, bitwise(strategy, more))), 3, 4)) {
      EXPECT_EQ(each, one) << strategy;
    }
    for (const Trace& each :
         traces(offloaded(tiny_run(folder, bitwise(strategy, mixed()))), 2, 4)) {
      EXPECT_EQ(each, one_mixed) << strategy;
    }
  }
  for (const Trace& each : traces(offloaded(tiny_run(folder, hybrid(2, more))), 4, 4)) {
    EXPECT_EQ(each, one);
  }
}

TEST(Sharding, OffloadGoesWithLossScalesUpdatesInBackwardAndSumsOfSeveralBackwards) {
  const TemporaryDirectory folder;
  for (const auto& [more, parallel] :
       {std::pair("precision: F16_MIXED train { batch_size: 8 micro_batch_size: 1 }", ""),
        std::pair("optimizer { clip_grad_norm: 0 optimizer_in_backward: true } train { batch_size: "
                  "8 micro_batch_size: 1 }",
                  ""),
        std::pair("train { batch_size: 8 micro_batch_size: 2 }", "bf16_reduce: true")}) {
    for (const char* strategy : kStrategies) {
      const std::string text = fmt::format("device: \"host:0\" parallel {{ strategy: {} {} }} {}",
                                           strategy, parallel, more);
      const config::RunConfig config = tiny_run(folder, text);
      EXPECT_EQ(traces(offloaded(config), 2, 4), traces(config, 2, 4)) << text;
    }
  }
}

TEST(Sharding, AnOffloadedRunIsResumedEvaluatedAndSampled) {
  const std::string more =
      "train { batch_size: 8 micro_batch_size: 1 steps: 6 eval_every: 2 sample_every: 3 "
      "sample_bytes: 8 } checkpoint { every_steps: 2 }";
  const TemporaryDirectory plain;
  rethrow_first(run_on_ranks(tiny_run(plain, bitwise("DDP", more)), plain, 1));
  const TemporaryDirectory run;
  const config::RunConfig config = offloaded(tiny_run(run, bitwise("FULL_SHARD", more)));
  std::atomic<int> asked = 0;
  (void)run_on_ranks(config, run, 2, [&] { return ++asked >= 3; });
  rethrow_first(run_on_ranks(config, run, 3));
  EXPECT_TRUE(weights_of(run) == weights_of(plain));
}

TEST(Sharding, OffloadLeavesOnTheDeviceWhatIsGathered) {
  const TemporaryDirectory folder;
  const std::string model =
      " device: \"host:0\" model { gpt2 { layers: 16 width: 128 } checkpoint_every: 1 } train { "
      "batch_size: 2 micro_batch_size: 1 }";
  Allocator& memory = allocator(parse_device("host:0"));
  const auto left = [&](const std::string& parallel) {
    const int64_t before = memory.stats().allocated;
    std::barrier all_ranks(2);
    return trained_on_ranks(tiny_run(folder, parallel + model), 2, [&](Trainer& trainer) {
      trainer.step();
      trainer.step();
      synchronize(parse_device("host:0"));
      all_ranks.arrive_and_wait();
      const int64_t bytes = memory.stats().allocated - before;
      all_ranks.arrive_and_wait();
      return bytes;
    })[0];
  };
  // All state is gone from the device; what is left are tables and the batch.
  EXPECT_LT(10 * left("parallel { strategy: FULL_SHARD cpu_offload: true }"),
            left("parallel { strategy: FULL_SHARD }"));
}

TEST(Sharding, OffloadIsRefusedWhereItHasNoPlace) {
  const TemporaryDirectory folder;
  for (const auto& [more, named] :
       {std::pair("parallel { strategy: FULL_SHARD cpu_offload: true }", "device is cpu"),
        std::pair("parallel { cpu_offload: true } device: \"host:0\"", "strategy that shards")}) {
    const config::RunConfig config = tiny_run(folder, more);
    const auto errors = dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
      Trainer trainer = Trainer::create(config, build_task(config), &group);
    });
    for (const std::exception_ptr& error : errors) {
      expect_error<ConfigError>([&] { std::rethrow_exception(error); }, "cpu_offload", named);
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
    for (const char* strategy :
         {"FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER", "HYBRID_SHARD shard_size: 2"}) {
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
      "train { batch_size: 8 micro_batch_size: 1 steps: 13 } checkpoint { every_steps: 2 }";
  const TemporaryDirectory whole;
  rethrow_first(run_on_ranks(tiny_run(whole, bitwise("DDP", more)), whole, 2));
  const std::string expected = weights_of(whole);
  ASSERT_FALSE(expected.empty());

  const TemporaryDirectory parts;
  for (const auto& [text, ranks] :
       {std::pair(bitwise("FULL_SHARD", more), 4), std::pair(hybrid(2, more), 6),
        std::pair(bitwise("SHARD_GRAD_OP", more), 3), std::pair(hybrid(4, more), 8),
        std::pair(bitwise("SHARD_OPTIMIZER", more), 2)}) {
    std::atomic<int> asked = 0;
    const auto errors =
        run_on_ranks(tiny_run(parts, text), parts, ranks, [&] { return ++asked >= 3; });
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

TEST(Sharding, EachRankReadsItsPartsOfWeightFilesAndCheckpoints) {
  const TemporaryDirectory folder;
  const config::RunConfig first = tiny_run(folder, "seed: 5 model { gpt2 { width: 64 } }");
  const auto saved = build_model(first);
  save_hugging_face(*saved, folder / "weights", 20000, DType::kBF16);
  const std::string more = "model { weights: \"" + (folder / "weights").string() +
                           "\" gpt2 { width: 64 } } train { batch_size: 8 micro_batch_size: 1 "
                           "steps: 4 } checkpoint { every_steps: 2 }";
  const TemporaryDirectory plain;
  rethrow_first(run_on_ranks(tiny_run(plain, bitwise("DDP", more)), plain, 1));
  for (const char* strategy : kStrategies) {
    const TemporaryDirectory run;
    std::atomic<int> asked = 0;
    (void)run_on_ranks(tiny_run(run, bitwise(strategy, more)), run, 3,
                       [&] { return ++asked >= 3; });
    rethrow_first(run_on_ranks(tiny_run(run, bitwise(strategy, more)), run, 2));
    EXPECT_TRUE(weights_of(run) == weights_of(plain)) << strategy;
  }
}

TEST(Sharding, DamagedInitialWeightsAreRefused) {
  const TemporaryDirectory folder;
  const config::RunConfig first = tiny_run(folder, "seed: 5 train { steps: 1 }");
  rethrow_first(run_on_ranks(first, folder, 1));
  std::fstream file(folder / "run" / "model.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-3, std::ios::end);
  file.put('x');
  file.close();
  const TemporaryDirectory run;
  const std::string more = "model { weights: \"" + (folder / "run").string() + "\" }";
  const auto errors =
      run_on_ranks(tiny_run(run, more + " parallel { strategy: FULL_SHARD }"), run, 2);
  expect_error<CheckpointError>([&] { std::rethrow_exception(errors[0]); },
                                "is not what was written");
}

TEST(Sharding, NoRankHoldsAWholeModelWhileARunStartsTrainsEvaluatesAndSaves) {
  // All ranks share this process's memory. A rank's state is four times its part of the weights.
  const TemporaryDirectory folder;
  const std::string more =
      "parallel { strategy: FULL_SHARD } model { gpt2 { layers: 16 width: 128 } checkpoint_every: "
      "1 } train { "
      "batch_size: 4 micro_batch_size: 1 steps: 4 eval_every: 2 eval_batches: 2 sample_every: 3 "
      "sample_bytes: 4 } checkpoint { every_steps: 2 }";
  const config::RunConfig config = tiny_run(folder, more);
  const int64_t whole = plan_run(tiny_run(folder, more), 1).parameter_bytes;
  constexpr int kRanks = 4;
  Allocator& memory = allocator(kCPU);
  std::atomic<int> asked = 0;
  for (const bool resumes : {false, true}) {
    const int64_t before = memory.stats().allocated;
    memory.reset_peak();
    const auto errors =
        run_on_ranks(config, folder, kRanks, [&] { return !resumes && ++asked >= 3; });
    if (resumes) rethrow_first(errors);
    const int64_t peak = memory.stats().peak_allocated - before;
    // Weights of all ranks alone would be 4, as would be the state of all.
    EXPECT_LT(static_cast<double>(peak), 6.0 * static_cast<double>(whole)) << resumes;
    EXPECT_GT(static_cast<double>(peak), 4.0 * static_cast<double>(whole)) << resumes;
  }
}

TEST(Sharding, OptionsOfDataParallelTrainingAreRefusedByName) {
  const TemporaryDirectory folder;
  for (const auto& [more, named] :
       {std::pair("parallel { strategy: FULL_SHARD bf16_compress {} }", "communication hook"),
        std::pair("parallel { strategy: FULL_SHARD bf16_reduce: true } reproducibility: BITWISE",
                  "bf16_reduce"),
        std::pair("parallel { strategy: FULL_SHARD } optimizer { muon {} clip_grad_norm: 0 "
                  "optimizer_in_backward: true }",
                  "optimizer_in_backward"),
        std::pair("parallel { strategy: SHARD_OPTIMIZER } optimizer { adafactor {} clip_grad_norm: "
                  "0 optimizer_in_backward: true }",
                  "optimizer.adafactor puts matrices together")}) {
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
