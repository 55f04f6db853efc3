// optimizer.adafactor where ranks keep parts of the model.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dist/fsdp/sharded_model.h"
#include "tests/train/rank_runs.h"
#include "tests/train/table_run.h"

namespace lockstep::train {
namespace {

/// A BITWISE run with matrices that are larger than a block of shards, so that ranks keep parts.
config::RunConfig spread_run(const TemporaryDirectory& folder, const std::string& more = "",
                             const std::string& optimizer = "") {
  return layered_run(folder,
                     "reproducibility: BITWISE train { micro_batch_size: 1 leaves: 8 } "
                     "model { gpt2 { width: 64 } } optimizer { adafactor { clip: 0.5 } "
                     "learning_rate: 0.02 " +
                         optimizer + " } " + more);
}

TEST(ShardedAdafactor, ChangesNoBitWhereTheRunIsBitwise) {
  const TemporaryDirectory folder;
  const Trace one = trace(spread_run(folder), 3);
  for (const auto& [strategy, ranks] :
       {std::pair("FULL_SHARD", 2), std::pair("FULL_SHARD", 3), std::pair("SHARD_GRAD_OP", 8),
        std::pair("SHARD_OPTIMIZER", 3), std::pair("HYBRID_SHARD shard_size: 2", 4)}) {
    const std::string parallel = std::string("parallel { strategy: ") + strategy + " } ";
    for (const Trace& each : traces(spread_run(folder, parallel), ranks, 3)) {
      EXPECT_EQ(each, one) << strategy << ranks;
    }
  }
}

TEST(ShardedAdafactor, ChangesNoBitOfGroupsPrecisionsAndDevices) {
  const TemporaryDirectory folder;
  const std::string parallel = "parallel { strategy: FULL_SHARD } ";
  const std::string groups =
      "groups { parameters: \"h.0\" learning_rate_factor: 0.5 } "
      "groups { parameters: \"wte\" weight_decay: 0.3 }";
  for (const auto& [more, optimizer] :
       std::vector<std::pair<std::string, std::string>>{{"", groups},
                                                        {"", "clip_grad_norm: 0.1"},
                                                        {"precision: BF16_MIXED ", ""},
                                                        {"precision: F16_MIXED ", ""},
                                                        {"model { freeze: \"h.0\" } ", ""},
                                                        {"device: \"host:0\" ", ""}}) {
    const Trace one = trace(spread_run(folder, more, optimizer), 3);
    for (const Trace& each : traces(spread_run(folder, more + parallel, optimizer), 3, 3)) {
      EXPECT_EQ(each, one) << more << optimizer;
    }
  }
  const Trace one = trace(spread_run(folder), 3);
  const std::string offload = "parallel { strategy: FULL_SHARD cpu_offload: true } ";
  for (const Trace& each : traces(spread_run(folder, "device: \"host:0\" " + offload), 2, 3)) {
    EXPECT_EQ(each, one);
  }
}

TEST(ShardedAdafactor, ChangesNoBitOfConvolutions) {
  const TemporaryDirectory folder;
  const std::string base =
      tiny_resnet(folder) +
      " reproducibility: BITWISE optimizer { adafactor {} learning_rate: 0.02 } "
      "train { micro_batch_size: 1 leaves: 4 } ";
  const Trace one = trace(tiny_run(folder, base), 3);
  for (const Trace& each :
       traces(tiny_run(folder, base + "parallel { strategy: FULL_SHARD } "), 2, 3)) {
    EXPECT_EQ(each, one);
  }
}

TEST(ShardedAdafactor, RanksHaveTheStateOfDifferentParameters) {
  const TemporaryDirectory folder;
  const auto names_of = [](const Trainer& trainer) {
    std::vector<std::string> names;
    for (const nn::StoredParameter& each : trainer.optimizer().state()) names.push_back(each.name);
    return names;
  };
  const std::vector<std::string> whole = names_of(Trainer::create(spread_run(folder)));
  std::multiset<std::string> together;
  for (const std::vector<std::string>& each :
       trained_on_ranks(spread_run(folder, "parallel { strategy: FULL_SHARD } "), 3, names_of)) {
    EXPECT_LT(each.size(), whole.size());
    together.insert(each.begin(), each.end());
  }
  EXPECT_EQ(together, std::multiset<std::string>(whole.begin(), whole.end()));
}

TEST(ShardedAdafactor, ARunGoesOnWithAnotherStrategyAndAverages) {
  const auto config = [](const TemporaryDirectory& folder, const std::string& more) {
    return tiny_run(
        folder,
        "reproducibility: BITWISE optimizer { adafactor {} learning_rate: 0.02 } "
        "train { micro_batch_size: 1 leaves: 8 steps: 12 weight_average { decay: 0.9 } } "
        "model { gpt2 { width: 64 } } " +
            more);
  };
  const TemporaryDirectory whole;
  rethrow_first(run_on_ranks(config(whole, "checkpoint { every_steps: 1 }"), whole, 1));
  for (const char* files : {"checkpoint { every_steps: 1 files: WHOLE } ",
                            "checkpoint { every_steps: 1 files: SHARDS } "}) {
    const TemporaryDirectory parts;
    for (const auto& [strategy, ranks] : {std::pair("FULL_SHARD", 3), std::pair("DDP", 1),
                                          std::pair("HYBRID_SHARD shard_size: 2", 4)}) {
      int asked = 0;
      const std::string parallel = std::string("parallel { strategy: ") + strategy + " } ";
      (void)run_on_ranks(config(parts, files + parallel), parts, ranks,
                         [&] { return ++asked >= 3; });
    }
    rethrow_first(run_on_ranks(
        config(parts, std::string(files) + "parallel { strategy: SHARD_OPTIMIZER } "), parts, 2));
    EXPECT_TRUE(weights_of(parts) == weights_of(whole)) << files;
  }
}

}  // namespace
}  // namespace lockstep::train
