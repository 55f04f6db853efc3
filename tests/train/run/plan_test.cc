#include "train/run/plan.h"

#include <fmt/format.h>

#include <optional>

#include "core/ops/factory/factory.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/allocator.h"
#include "core/tensor/generator.h"
#include "nn/layers.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "tests/train/tiny_run.h"
#include "train/build.h"
#include "train/gradient_options.h"
#include "train/run/balance.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

/// Peak of the CPU allocator's bytes while `call` runs, above those allocated before.
template <class F>
int64_t peak_during(F&& call) {
  Allocator& memory = allocator(kCPU);
  memory.reset_peak();
  const int64_t before = memory.stats().allocated;
  call();
  return memory.stats().peak_allocated - before;
}

int64_t bytes_of(const std::vector<nn::StoredParameter>& stored) {
  int64_t bytes = 0;
  for (const nn::StoredParameter& each : stored)
    bytes += static_cast<int64_t>(each.tensor.nbytes());
  return bytes;
}

struct PlannedRun {
  const char* name;
  const char* config;
  int64_t arenas = 1;
};

void PrintTo(const PlannedRun& shape, std::ostream* out) { *out << shape.name; }

class PlanOf : public testing::TestWithParam<PlannedRun> {};

TEST_P(PlanOf, IsWithinFivePercentOfWhatTrainingTakes) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, GetParam().config);
  const RunPlan plan = plan_run(config);
  std::optional<Trainer> trainer;
  const int64_t peak = peak_during([&] {
    trainer.emplace(Trainer::create(config));
    for (int i = 0; i < 3; ++i) trainer->step();
    trainer->evaluate(2);
    save_checkpoint(folder / "checkpoints", *trainer, config::to_text(config));
  });
  nn::Module& model = trainer->task().model();
  int64_t arena_bytes = 0;  // of one arena; gradients take whole cache lines
  for (const Tensor& each : model.parameters()) arena_bytes += (each.numel() + 15) / 16 * 64;
  EXPECT_EQ(plan.parameters, model.parameter_count());
  EXPECT_EQ(plan.parameter_bytes, 4 * model.parameter_count());
  EXPECT_EQ(plan.gradient_arenas, GetParam().arenas);
  EXPECT_EQ(plan.gradient_bytes, GetParam().arenas * arena_bytes);
  EXPECT_EQ(plan.optimizer_bytes, bytes_of(trainer->optimizer().state()));
  EXPECT_EQ(plan.flops_per_token, trainer->task().flops_per_token());
  EXPECT_EQ(plan.tokens_per_sample, trainer->task().tokens_per_sample());
  EXPECT_EQ(plan.batch_size, trainer->samples_per_batch());
  EXPECT_NEAR(static_cast<double>(plan.peak_bytes) / static_cast<double>(peak), 1, 0.05);
  EXPECT_EQ(
      plan.parameter_bytes + plan.gradient_bytes + plan.optimizer_bytes + plan.activation_bytes,
      plan.peak_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PlanOf,
    testing::Values(
        PlannedRun{"Gpt2WithDropout", ""}, PlannedRun{"Gpt2", "model { gpt2 { dropout: 0 } }"},
        PlannedRun{"MicroBatches", "train { micro_batch_size: 2 }"},
        PlannedRun{"MicroBatchesAndLeaves",
                   "train { batch_size: 16 micro_batch_size: 2 leaves: 4 }", 3},
        PlannedRun{"EightLeaves",
                   "model { gpt2 { dropout: 0 } } train { micro_batch_size: 1 leaves: 8 }", 4},
        PlannedRun{
            "LlamaWithFewerKeyHeads",
            "model { llama { context_length: 32 layers: 2 heads: 4 kv_heads: 2 width: 32 } }"},
        PlannedRun{"LlamaWithLeaves",
                   "model { llama { context_length: 32 layers: 2 heads: 4 kv_heads: 1 width: 32 "
                   "tie_embeddings: true } } train { micro_batch_size: 2 leaves: 2 }",
                   2},
        PlannedRun{
            "Perceptron",
            "model { mlp { inputs: 64 classes: 10 hidden_widths: [96, 32] } } data { random {} }"},
        PlannedRun{"ResnetWithLeaves",
                   "model { resnet { channels: 1 height: 8 width: 8 classes: 10 base_width: 8 "
                   "blocks: [1, 1] } } data { random {} } train { micro_batch_size: 2 leaves: 2 }",
                   2},
        PlannedRun{"ResnetOfThreeStages",
                   "model { resnet { channels: 1 height: 8 width: 8 classes: 10 base_width: 16 "
                   "blocks: [1, 1, 1] } } data { random {} } train { batch_size: 64 }"},
        PlannedRun{"SgdWithMomentum", "optimizer { sgd { momentum: 0.9 } }"},
        PlannedRun{"SgdWithoutMomentum", "optimizer { sgd { momentum: 0 } }"},
        // With so few tokens, the transposed copies in a checkpoint exceed the activations.
        PlannedRun{"FewTokens",
                   "model { gpt2 { context_length: 8 layers: 1 heads: 4 width: 256 dropout: 0 } } "
                   "optimizer { sgd { momentum: 0 } } train { batch_size: 1 }"},
        // Blocks of megabytes, which the allocator rounds differently from small ones.
        PlannedRun{
            "LargeBlocks",
            "model { gpt2 { context_length: 128 layers: 2 heads: 4 width: 128 dropout: 0 } }"},
        // The logits of a chunk exceed everything else.
        PlannedRun{"LargeVocabulary",
                   "model { gpt2 { vocab_size: 16384 context_length: 64 layers: 1 heads: 1 width: "
                   "8 } }"},
        PlannedRun{"Bf16", "precision: BF16_MIXED"},
        PlannedRun{
            "Bf16LargeBlocks",
            "precision: BF16_MIXED "
            "model { gpt2 { context_length: 128 layers: 2 heads: 4 width: 128 dropout: 0 } }"},
        PlannedRun{
            "Bf16Llama",
            "precision: BF16_MIXED "
            "model { llama { context_length: 32 layers: 2 heads: 4 kv_heads: 2 width: 32 } } "
            "train { micro_batch_size: 2 leaves: 2 }",
            2},
        PlannedRun{
            "F16Resnet",
            "precision: F16_MIXED model { resnet { channels: 1 height: 8 width: 8 classes: 10 "
            "base_width: 16 blocks: [1, 1] } } data { random {} } train { batch_size: 32 }"},
        PlannedRun{"LargeBlocksWithDropoutAndLeaves",
                   "model { gpt2 { context_length: 96 layers: 2 heads: 4 width: 128 } } "
                   "train { micro_batch_size: 2 leaves: 2 }",
                   2},
        PlannedRun{"Compiled", "compile { enabled: true } model { gpt2 { layers: 4 dropout: 0 } }"},
        PlannedRun{
            "CompiledWithABudget",
            "compile { enabled: true activation_budget: 0.5 } "
            "model { gpt2 { context_length: 128 layers: 6 heads: 4 width: 64 dropout: 0 } }"},
        PlannedRun{"CompiledBf16WithTheLeastActivations",
                   "precision: BF16_MIXED compile { enabled: true activation_budget: 0 } "
                   "model { gpt2 { context_length: 128 layers: 6 heads: 4 width: 64 } }"}),
    [](const auto& shape) { return shape.param.name; });

TEST(Plan, CountsTheTokensAndOperationsOfTheWholeRun) {
  const TemporaryDirectory folder;
  const RunPlan plan = plan_run(tiny_run(folder, "train { steps: 7 micro_batch_size: 2 }"));
  EXPECT_EQ(plan.tokens_per_step(), 8 * 16);
  EXPECT_EQ(plan.total_tokens(), 7 * 8 * 16);
  EXPECT_EQ(plan.micro_batch_size, 2);
  EXPECT_EQ(plan.micro_batches, 4);
  EXPECT_DOUBLE_EQ(plan.total_flops(), plan.flops_per_token * 7 * 8 * 16);
}

TEST(Plan, CheckpointBytesAreThoseOfTheTensorsInItsFiles) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder);
  Trainer trainer = Trainer::create(config);
  const auto path = save_checkpoint(folder / "checkpoints", trainer, config::to_text(config));
  int64_t bytes = 0;
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const SafetensorsFile file(path / name);
    for (const TensorRecord& tensor : file.tensors()) {
      bytes += static_cast<int64_t>(tensor.bytes.size());
    }
  }
  EXPECT_EQ(plan_run(config).checkpoint_bytes, bytes);
}

TEST(Plan, ARankHoldsWhatARunOfItsShareHolds) {
  const TemporaryDirectory folder;
  const config::RunConfig whole =
      tiny_run(folder, "train { batch_size: 16 micro_batch_size: 1 leaves: 8 }");
  const config::RunConfig quarter =
      tiny_run(folder, "train { batch_size: 4 micro_batch_size: 1 leaves: 2 }");
  const RunPlan shared = plan_run(whole, 4);
  const RunPlan alone = plan_run(quarter);
  EXPECT_EQ(shared.micro_batches, 4);
  EXPECT_EQ(shared.leaves, 2);
  EXPECT_EQ(shared.gradient_arenas, 2);
  EXPECT_EQ(shared.peak_bytes, alone.peak_bytes);
  EXPECT_EQ(shared.tokens_per_step(), 16 * 16) << "tokens are those of all ranks";
  EXPECT_GT(plan_run(whole).gradient_bytes, shared.gradient_bytes);
}

TEST(Plan, RanksThatLeavesDoNotDivideByPlanForTheOneWithMost) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, "train { batch_size: 8 micro_batch_size: 1 leaves: 8 }");
  EXPECT_EQ(plan_run(config, 3).micro_batches, 3);
  EXPECT_EQ(plan_run(config, 3).gradient_arenas, 3);
  EXPECT_EQ(plan_run(config, 6).micro_batches, 2);
}

TEST(Plan, MoreRanksThanLeavesShareTheSamples) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { batch_size: 12 }");
  const RunPlan plan = plan_run(config, 4);
  EXPECT_EQ(plan.micro_batch_size, 3);
  EXPECT_EQ(plan.micro_batches, 1);
  EXPECT_LT(plan.activation_bytes, plan_run(config).activation_bytes);
}

TEST(Plan, RefusesRanksThatCannotShareAStep) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { micro_batch_size: 1 leaves: 4 }");
  EXPECT_THROW(plan_run(config, 0), ConfigError);
  for (const int64_t ranks : {5, 16}) {
    expect_error<ConfigError>([&] { plan_run(config, ranks); }, "[train]", std::to_string(ranks),
                              "train.leaves, which is 4");
  }
}

TEST(Plan, TakesNoMemoryAndReadsNoFile) {
  const TemporaryDirectory folder;
  // About a gigabyte of parameters.
  const config::RunConfig config = tiny_run(
      folder,
      "model { weights: \"absent\" gpt2 { context_length: 64 layers: 20 heads: 16 width: 1024 } } "
      "data { text { path: \"absent.txt\" } }");
  manual_seed(5);
  default_generator().set_position(3, 2);
  const RandomKey generator = default_generator().state();
  const int64_t before = allocator(kMeta).stats().allocated;
  RunPlan plan;
  EXPECT_LT(peak_during([&] { plan = plan_run(config); }), 1 << 20);
  EXPECT_GT(plan.peak_bytes, int64_t{4} << 30);
  EXPECT_EQ(allocator(kMeta).stats().allocated, before) << "all was given back";
  EXPECT_EQ(default_generator().state(), generator);
  EXPECT_EQ(default_device(), kCPU);
}

/// A classifier that no config describes.
struct Classifier final : nn::Module {
  Classifier() : hidden(300, 200, true), last(200, 10, true) {
    register_module("hidden", hidden);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x) const { return last.forward(hidden.forward(x).relu()); }

  nn::Linear hidden;
  nn::Linear last;
};

PlannedModel classifier(int64_t rows) {
  auto model = std::make_unique<Classifier>();
  const Classifier& made = *model;
  return {.model = std::move(model),
          .make_inputs =
              [rows] {
                return std::vector<Tensor>{zeros({rows, 300}), zeros({rows}, DType::kI64)};
              },
          .loss =
              [&made](const std::vector<Tensor>& batch) {
                return cross_entropy_loss(made.forward(batch[0]), batch[1], {}, Reduction::kSum);
              }};
}

TEST(Plan, ServesAnyModelThatMakesALoss) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { batch_size: 64 }");
  const RunPlan plan = plan_run(config, 1, [](int64_t) { return classifier(64); });
  EXPECT_EQ(plan.parameters, 300 * 200 + 200 + 200 * 10 + 10);
  EXPECT_EQ(plan.tokens_per_step(), 64) << "a sample counts as one";
  const int64_t peak = peak_during([&] {
    const PlannedModel real = classifier(64);
    const std::vector<Tensor> batch = real.make_inputs();
    const auto optimizer = build_optimizer(config, real.model->named_parameters());
    dist::Reducer reducer(trained_parameters(*real.model), nullptr);
    for (int step = 0; step < 3; ++step) {
      reducer.begin_step();
      reducer.begin_leaf();
      const Tensor loss = real.loss(batch);
      loss.backward();
      reducer.finish();
      optimizer->step(reducer.gradients(), 1e-3, 1);
    }
  });
  EXPECT_NEAR(static_cast<double>(plan.peak_bytes) / static_cast<double>(peak), 1, 0.05);
}

TEST(Plan, BytesThatRanksSendAreThoseOfTheRun) {
  const TemporaryDirectory folder;
  for (const auto& [strategy, ranks] :
       {std::pair("DDP", 2), std::pair("FULL_SHARD", 2), std::pair("SHARD_GRAD_OP", 2),
        std::pair("SHARD_OPTIMIZER", 2), std::pair("HYBRID_SHARD shard_size: 2", 4)}) {
    for (const char* more : {"", "reproducibility: BITWISE", "precision: BF16_MIXED",
                             "optimizer { muon { share_ranks: true } }"}) {
      const config::RunConfig config = tiny_run(
          folder, fmt::format("parallel {{ strategy: {} }} train {{ batch_size: 8 "
                              "micro_batch_size: 2 leaves: 4 }} model {{ gpt2 {{ width: 64 "
                              "}} }} {}",
                              strategy, more));
      const auto sent = trained_on_ranks(config, ranks, [](Trainer& trainer) {
        trainer.step();
        return trainer.step().sent_bytes;
      });
      const double planned = static_cast<double>(plan_run(config, ranks).communication.sum());
      // The run also sends its counts, losses and norms.
      EXPECT_NEAR(planned / static_cast<double>(sent.back()), 1, 0.02) << strategy << " " << more;
    }
  }
}

TEST(Plan, CountsTheSumsThatARankOfUnevenSubtreesSends) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder,
               "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 leaves: 8 } "
               "model { gpt2 { width: 64 } }");
  const auto sent = trained_on_ranks(config, 3, [](Trainer& trainer) {
    trainer.step();
    return trainer.step().sent_bytes;
  });
  const auto planned = static_cast<double>(plan_run(config, 3).communication.sum());
  EXPECT_NEAR(planned / static_cast<double>(sent.back()), 1, 0.02);
}

TEST(Plan, WithBalanceIsThatOfTheRankThatMayNeedMost) {
  const TemporaryDirectory folder;
  const std::string run =
      "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 leaves: 8 } "
      "model { gpt2 { width: 64 } } parallel { strategy: ";
  const DealtRank most = rank_with_most_sums(8, 3);
  const auto rank = static_cast<size_t>(most.rank);
  for (const std::string strategy : {"DDP", "SHARD_OPTIMIZER"}) {
    const RunPlan even = plan_run(tiny_run(folder, run + strategy + " }"), 3);
    const config::RunConfig config = tiny_run(folder, run + strategy + " balance: SPEED }");
    const RunPlan plan = plan_run(config, 3);
    EXPECT_FALSE(even.is_balanced);
    EXPECT_TRUE(plan.is_balanced);
    EXPECT_EQ(plan.leaves, most.deal.counts()[rank]);
    EXPECT_EQ(plan.micro_batches, plan.leaves);
    EXPECT_EQ(plan.gradient_arenas, 4);
    EXPECT_EQ(even.gradient_arenas, 3);
    EXPECT_GT(plan.peak_bytes, even.peak_bytes) << strategy;
    const auto used = trained_on_ranks(config, 3, [&](Trainer& trainer) {
      trainer.deal_out(most.deal);
      trainer.step();
      const auto sent = trainer.step().sent_bytes;
      return std::pair(sent, trainer.is_sharded() ? trainer.sharded()->gradient_bytes()
                                                  : trainer.reducer()->bytes());
    });
    EXPECT_NEAR(
        static_cast<double>(plan.communication.sum()) / static_cast<double>(used[rank].first), 1,
        0.02)
        << strategy;
    EXPECT_EQ(plan.gradient_bytes, used[rank].second) << strategy;
  }
  EXPECT_FALSE(plan_run(tiny_run(folder, run + "DDP balance: SPEED }"), 1).is_balanced);
}

TEST(Plan, StateOfAShardedModelIsTheRanksPart) {
  const TemporaryDirectory folder;
  const std::string model = "model { gpt2 { layers: 4 width: 256 } }";
  const RunPlan whole = plan_run(tiny_run(folder, model), 4);
  const auto state = [](const RunPlan& plan) {
    return plan.parameter_bytes + plan.gradient_bytes + plan.optimizer_bytes;
  };
  const RunPlan full = plan_run(tiny_run(folder, model + " parallel { strategy: FULL_SHARD }"), 4);
  EXPECT_LE(static_cast<double>(state(full)), 1.05 / 4 * static_cast<double>(state(whole)));
  EXPECT_EQ(full.checkpoint_bytes, whole.checkpoint_bytes);
  const RunPlan optimizer =
      plan_run(tiny_run(folder, model + " parallel { strategy: SHARD_OPTIMIZER }"), 4);
  EXPECT_GE(optimizer.parameter_bytes, whole.parameter_bytes);
  EXPECT_EQ(optimizer.optimizer_bytes, full.optimizer_bytes);
}

TEST(Plan, CountsWhatRanksShareOfTheUpdate) {
  const TemporaryDirectory folder;
  const std::string model =
      "model { gpt2 { layers: 16 width: 128 } } train { micro_batch_size: 1 } ";
  const auto plan = [&](const std::string& more) {
    return plan_run(tiny_run(folder, model + more), 2);
  };
  const auto of_matrices = int64_t{16} * 12 * 128 * 128 * 4;
  const RunPlan alone = plan("optimizer { muon {} }");
  const RunPlan shared = plan("optimizer { muon { share_ranks: true } }");
  EXPECT_GT(shared.peak_bytes, alone.peak_bytes);
  EXPECT_EQ(shared.communication.all_gather, of_matrices / 2);
  // Directions are put together, and what becomes of them is taken apart again.
  const std::string sharded = "parallel { strategy: FULL_SHARD } optimizer { ";
  const RunPlan spread = plan(sharded + "muon {} }"), plain = plan(sharded + "sgd {} }");
  EXPECT_GT(spread.peak_bytes, plain.peak_bytes);
  EXPECT_GT(spread.communication.all_to_all, of_matrices / 2);
  EXPECT_LT(spread.communication.all_to_all, of_matrices);
  EXPECT_EQ(spread.checkpoint_bytes, alone.checkpoint_bytes);
  const RunPlan rows = plan(sharded + "adafactor {} }");
  EXPECT_GT(rows.communication.all_to_all, of_matrices / 2);
  EXPECT_LT(rows.communication.all_to_all, 2 * of_matrices);
  EXPECT_EQ(rows.checkpoint_bytes, plan("optimizer { adafactor {} }").checkpoint_bytes);
}

TEST(Plan, CopiesInTheRanksMemoryAreFourPartsOfTheState) {
  const TemporaryDirectory folder;
  const std::string every =
      "model { gpt2 { context_length: 32 layers: 2 heads: 2 width: 128 } } "
      "checkpoint { memory_every: 2 } ";
  const std::string more = every + "parallel { strategy: ";
  const RunPlan alone = plan_run(tiny_run(folder, every));
  EXPECT_EQ(alone.copy_bytes, 0);
  const auto whole = static_cast<double>(alone.parameter_bytes + alone.optimizer_bytes);
  for (const char* strategy :
       {"DDP", "FULL_SHARD", "SHARD_OPTIMIZER", "HYBRID_SHARD shard_size: 2"}) {
    const RunPlan plan = plan_run(tiny_run(folder, more + strategy + " }"), 4);
    EXPECT_NEAR(static_cast<double>(plan.copy_bytes), whole, 0.1 * whole) << strategy;
  }
}

TEST(Plan, CopiesOfAsynchronousSavesAreInThePeak) {
  const TemporaryDirectory folder;
  const std::string more =
      "model { gpt2 { context_length: 32 layers: 2 heads: 2 width: 128 } } "
      "train { steps: 6 sample_bytes: 0 } checkpoint { every_steps: 1 asynchronous: ";
  const config::RunConfig config = tiny_run(folder, more + "true }");
  const RunPlan plan = plan_run(config);
  EXPECT_EQ(plan.copy_bytes, plan.parameter_bytes + plan.optimizer_bytes);
  EXPECT_EQ(plan.peak_bytes,
            plan_run(tiny_run(folder, more + "false }")).peak_bytes + plan.copy_bytes);
  const int64_t peak = peak_during([&] { rethrow_first(run_on_ranks(config, folder, 1)); });
  EXPECT_NEAR(static_cast<double>(plan.peak_bytes) / static_cast<double>(peak), 1, 0.05);

  const RunPlan on_device = plan_run(tiny_run(folder, more + "true } device: \"host:0\""));
  EXPECT_EQ(on_device.host_bytes, plan.copy_bytes);
  EXPECT_EQ(on_device.peak_bytes, plan.peak_bytes - plan.copy_bytes);
  for (const char* strategy : {"FULL_SHARD", "SHARD_OPTIMIZER"}) {
    const RunPlan sharded =
        plan_run(tiny_run(folder, more + "true } parallel { strategy: " + strategy + " }"), 4);
    EXPECT_NEAR(static_cast<double>(sharded.copy_bytes), static_cast<double>(plan.copy_bytes) / 4,
                0.1 * static_cast<double>(plan.copy_bytes))
        << strategy;
  }
}

TEST(Plan, OffloadTakesStateFromTheDevice) {
  const TemporaryDirectory folder;
  const auto plan = [&](const std::string& parallel) {
    return plan_run(tiny_run(folder,
                             "model { gpt2 { layers: 4 width: 256 } } device: \"host:0\" "
                             "parallel { strategy: " +
                                 parallel + " }"),
                    4);
  };
  for (const char* strategy : {"FULL_SHARD", "SHARD_OPTIMIZER"}) {
    const RunPlan device = plan(strategy);
    const RunPlan host = plan(std::string(strategy) + " cpu_offload: true");
    const int64_t shards = plan("FULL_SHARD").parameter_bytes;
    EXPECT_EQ(device.host_bytes, 0);
    EXPECT_EQ(host.host_bytes, shards + host.gradient_bytes + host.optimizer_bytes) << strategy;
    const bool keeps_all = host.parameter_bytes > shards;
    EXPECT_EQ(host.peak_bytes, device.peak_bytes - host.host_bytes + (keeps_all ? shards : 0))
        << strategy;
  }
}

TEST(Plan, CountsWhatEveryMicroBatchSendsAndHolds) {
  const TemporaryDirectory folder;
  const auto planned = [&](int micro_batches, const std::string& more) {
    return plan_run(tiny_run(folder, fmt::format("train {{ batch_size: {} micro_batch_size: 2 ",
                                                 4 * micro_batches) +
                                         more),
                    2);
  };
  const std::string sharded = "} parallel { strategy: FULL_SHARD } ";
  const RunPlan one = planned(1, sharded), two = planned(2, sharded), eight = planned(8, sharded);
  EXPECT_EQ(one.micro_batches, 1);
  EXPECT_EQ(eight.micro_batches, 8);
  EXPECT_GT(one.communication.all_gather, 0);
  EXPECT_EQ(two.communication.all_gather, 2 * one.communication.all_gather);
  EXPECT_EQ(eight.communication.all_gather, 8 * one.communication.all_gather);
  EXPECT_EQ(planned(3, sharded).communication.all_gather, 3 * one.communication.all_gather);
  EXPECT_EQ(eight.peak_bytes, two.peak_bytes) << "later micro-batches do what the second does";
  EXPECT_GE(two.peak_bytes, one.peak_bytes);
  const std::string offloaded =
      "offload_activations: true } device: \"host:0\" "
      "model { gpt2 { width: 64 context_length: 64 } }";
  const int64_t host = planned(1, offloaded).host_bytes;
  EXPECT_GT(host, 0);
  EXPECT_EQ(planned(2, offloaded).host_bytes, host) << "those of one micro-batch at a time";
  EXPECT_EQ(planned(8, offloaded).host_bytes, host);
}

}  // namespace
}  // namespace lockstep::train
