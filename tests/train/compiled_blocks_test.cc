#include "train/compiled_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "core/dispatch/observer.h"
#include "core/tensor/allocator.h"
#include "nn/language_model.h"
#include "tests/train/rank_runs.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kCompiled = "compile { enabled: true } ";
constexpr const char* kLlamaBlocks =
    "model { llama { context_length: 16 layers: 3 heads: 4 kv_heads: 2 width: 16 } } ";
constexpr const char* kResnetBlocks =
    "model { resnet { channels: 1 height: 8 width: 8 classes: 10 base_width: 8 blocks: [1, 1] } } "
    "data { random {} } ";

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& each : lines) text += each + "\n";
  return text;
}

/// Steps with evaluations between them.
Trace trace_with_evaluation(Trainer& trainer) {
  Trace result;
  for (int i = 0; i < 2; ++i) {
    Trace part = trace(trainer, 3);
    result.losses.insert(result.losses.end(), part.losses.begin(), part.losses.end());
    result.norms.insert(result.norms.end(), part.norms.begin(), part.norms.end());
    result.weights = std::move(part.weights);
    if (trainer.task().holds_out()) result.losses.push_back(trainer.evaluate(2)->loss);
  }
  return result;
}

TEST(CompiledBlocks, RunsHaveTheBitsOfRunsWithout) {
  for (const std::string more :
       {"", "model { gpt2 { dropout: 0 } }", "precision: BF16_MIXED",
        "precision: BF16_MIXED model { gpt2 { dropout: 0 } } train { micro_batch_size: 2 }",
        "precision: F16_MIXED", "train { micro_batch_size: 1 } reproducibility: BITWISE",
        "optimizer { optimizer_in_backward: true clip_grad_norm: 0 }",
        "optimizer { optimizer_in_backward: true clip_grad_norm: 0 } precision: BF16_MIXED",
        "model { recompute: BLOCK }", "model { recompute: CHEAP }", kLlamaBlocks,
        "model { mup { base_width: 8 } }",
        "precision: BF16_MIXED model { llama { context_length: 16 layers: 2 heads: 4 kv_heads: 2 "
        "width: 16 } }",
        kResnetBlocks, "model { lora { rank: 2 targets: \"c_fc\" } }"}) {
    const TemporaryDirectory folder;
    const auto config_of = [&](const std::string& with) {
      return layered_run(folder, more + with);
    };
    config::RunConfig plain, compiled;
    try {
      plain = config_of(" "), compiled = config_of(std::string(" ") + kCompiled);
    } catch (const ConfigError& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    Trainer eager = Trainer::create(plain), replaying = Trainer::create(compiled);
    EXPECT_EQ(trace_with_evaluation(replaying), trace_with_evaluation(eager)) << more;
    EXPECT_EQ(eager.compiled_blocks(), nullptr);
  }
}

TEST(CompiledBlocks, ABudgetOfActivationsChangesNoBit) {
  for (const std::string more :
       {"", "model { gpt2 { dropout: 0 } }", "precision: BF16_MIXED", kLlamaBlocks,
        "train { micro_batch_size: 1 } reproducibility: BITWISE"}) {
    const TemporaryDirectory folder;
    Trainer eager = Trainer::create(layered_run(folder, more));
    const Trace want = trace_with_evaluation(eager);
    for (const char* budget : {"0.7", "0"}) {
      Trainer trainer = Trainer::create(layered_run(
          folder,
          fmt::format("{} compile {{ enabled: true activation_budget: {} }}", more, budget)));
      EXPECT_EQ(trace_with_evaluation(trainer), want) << more << budget;
      EXPECT_EQ(trainer.compiled_blocks()->counts().eager, 0) << more << budget;
    }
  }
}

TEST(CompiledBlocks, ABudgetOfActivationsSavesMemory) {
  const auto peak = [](const std::string& more) {
    const TemporaryDirectory folder;
    Trainer trainer = Trainer::create(layered_run(
        folder,
        "model { gpt2 { layers: 6 width: 64 dropout: 0 } } train { micro_batch_size: 8 } " + more));
    trainer.step();
    Allocator& memory = allocator(kCPU);
    const int64_t before = memory.stats().allocated;
    memory.reset_peak();
    trainer.step();
    return memory.stats().peak_allocated - before;
  };
  const int64_t all = peak("compile { enabled: true }");
  const int64_t part = peak("compile { enabled: true activation_budget: 0.5 }");
  const int64_t least = peak("compile { enabled: true activation_budget: 0 }");
  EXPECT_LT(static_cast<double>(part), 0.7 * static_cast<double>(all));
  EXPECT_LT(least, part);
}

TEST(CompiledBlocks, BlocksThatAreAlikeShareOneProgramForTraining) {
  const TemporaryDirectory folder;
  Trainer trainer =
      Trainer::create(layered_run(folder, std::string(kCompiled) + "model { gpt2 { layers: 6 } }"));
  trace(trainer, 4);
  const CompileCounts counts = trainer.compiled_blocks()->counts();
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.replayed, 4 * 6 - 1);
  EXPECT_EQ(counts.eager, 0);
  EXPECT_THAT(trainer.compiled_blocks()->reasons(), IsEmpty());
}

TEST(CompiledBlocks, AnotherScaleOfTheAttentionIsAnotherProgram) {
  const TemporaryDirectory folder;
  const nn::Mup scaled{.head_width = 4};
  const auto losses = [&](const std::string& more) {
    Trainer trainer = Trainer::create(layered_run(folder, more));
    trainer.step();
    dynamic_cast<nn::LanguageModel&>(trainer.task().model()).use_multipliers(scaled);
    return trainer.step().loss;
  };
  EXPECT_EQ(losses(kCompiled), losses(""));
}

TEST(CompiledBlocks, RanksAndStrategiesChangeNoBitWithBitwise) {
  for (const std::string more : {kBitwiseRuns[0], kBitwiseRuns[1], kBitwiseRuns[2]}) {
    const TemporaryDirectory folder;
    const std::string bitwise = "reproducibility: BITWISE " + more;
    const Trace want = trace(tiny_run(folder, bitwise), 3);
    for (const int ranks : {1, 2, 4}) {
      for (const std::string with :
           {"DDP } compile { enabled: true", "FULL_SHARD } compile { enabled: true",
            "FULL_SHARD } compile { enabled: true activation_budget: 0.4"}) {
        const config::RunConfig config =
            tiny_run(folder, fmt::format("{} parallel {{ strategy: {} }}", bitwise, with));
        for (const Trace& of_rank : traces(config, ranks, 3)) {
          EXPECT_EQ(of_rank.losses, want.losses) << more << ranks << with;
          EXPECT_EQ(of_rank.weights, want.weights) << more << ranks << with;
        }
      }
    }
  }
}

TEST(CompiledBlocks, ARunGoesOnFromACheckpointThatWasMadeWithout) {
  for (const char* precision : {"F32", "BF16_MIXED"}) {
    const TemporaryDirectory folder;
    const std::string in = fmt::format("precision: {} ", precision);
    const config::RunConfig plain = tiny_run(folder, in);
    Trainer whole = Trainer::create(plain);
    trace(whole, 3);
    const auto path = save_checkpoint(folder / precision, whole, config::to_text(plain));
    const Trace want = trace(whole, 3);
    Trainer resumed = Trainer::create(tiny_run(folder, in + kCompiled));
    restore(resumed, path, verify_checkpoint(path));
    EXPECT_EQ(trace(resumed, 3), want);
    EXPECT_GT(resumed.compiled_blocks()->counts().replayed, 0);
  }
}

/// What a run says of its blocks after a step.
std::string reasons_of(const std::string& more) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(layered_run(folder, kCompiled + more));
  trace(trainer, 1);
  EXPECT_EQ(trainer.compiled_blocks()->counts().replayed, 0) << more;
  return joined(trainer.compiled_blocks()->reasons());
}

TEST(CompiledBlocks, WhatCannotBeCompiledSaysWhy) {
  EXPECT_EQ(reasons_of("model { recompute: BLOCK }"),
            "Gpt2Block: eager: hooks keep what is saved for backward\n");
  EXPECT_EQ(reasons_of(kResnetBlocks),
            "BasicBlock: eager: training changes its running statistics\n");
  EXPECT_EQ(reasons_of("model { mlp { inputs: 64 classes: 10 } } data { random {} }"),
            "off: no block of Mlp can be compiled\n");
}

TEST(CompiledBlocks, ABlockWithForwardHooksIsCalledAndOneThatIsHookedItselfIsNot) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder, kCompiled));
  const auto blocks = dynamic_cast<nn::BlockModel&>(trainer.task().model()).sequence();
  int around = 0, inside = 0;
  blocks[0]->register_forward_hook([&](const auto&...) { ++around; });
  trace(trainer, 2);
  EXPECT_EQ(around, 2);
  EXPECT_THAT(trainer.compiled_blocks()->reasons(), IsEmpty());
  blocks[1]->for_each([&](nn::Module& module) {
    if (module.path().ends_with("ln_1")) {
      module.register_forward_hook([&](const auto&...) { ++inside; });
    }
  });
  trace(trainer, 2);
  EXPECT_EQ(inside, 2);
  EXPECT_THAT(trainer.compiled_blocks()->reasons(),
              ElementsAre("Gpt2Block: eager: a module of it has forward hooks"));
}

TEST(CompiledBlocks, ARunTellsItsPassesAndReasonsOnce) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, std::string(kCompiled) +
                              "model { recompute: BLOCK } train { steps: 3 eval_every: 1 }");
  TrainingRun run(config,
                  RunDirectory::create_at(folder / "run", RunDirectory::Existing::kContinue), "{}");
  const auto path = folder / "terminal.txt";
  std::FILE* const terminal = std::fopen(path.c_str(), "w");
  run.run({.terminal = terminal});
  std::fclose(terminal);
  const auto text_of = [](const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  const std::string told = text_of(path);
  const std::string reason = "compile: Gpt2Block: eager: hooks keep what is saved for backward";
  const size_t first = told.find(reason);
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find(reason, first + 1), std::string::npos) << told;
  // Forward and recomputation are called. Evaluations record nothing for backward, and are
  // compiled.
  EXPECT_THAT(text_of(run.directory().metrics()),
              AllOf(HasSubstr("\"compiled_passes\":0,\"called_passes\":4"),
                    HasSubstr("\"compiled_passes\":8,\"called_passes\":4")));
}

}  // namespace
}  // namespace lockstep::train
