// model.recompute: less memory, the same bits.

#include <gtest/gtest.h>

#include "tests/autograd/throws.h"
#include "tests/train/measured_peak.h"
#include "tests/train/rank_runs.h"
#include "tests/train/tiny_run.h"
#include "train/run/plan.h"

namespace lockstep::train {
namespace {

using config::ModelConfig;

/// Losses and norms of some steps, and the final bits of parameters, optimizer state and buffers.
std::pair<std::vector<double>, std::string> losses_and_state(const config::RunConfig& config) {
  Trainer trainer = Trainer::create(config);
  std::vector<double> numbers;
  for (int i = 0; i < 4; ++i) {
    const StepResult step = trainer.step();
    numbers.push_back(step.loss);
    numbers.push_back(step.grad_norm);
  }
  std::string bytes = state_bytes(trainer);
  for (const nn::NamedParameter& buffer : trainer.task().model().named_buffers()) {
    bytes.append(static_cast<const char*>(buffer.tensor.data()), buffer.tensor.nbytes());
  }
  return {numbers, bytes};
}

struct RecomputedModel {
  const char* name;
  const char* config;
};
void PrintTo(const RecomputedModel& shape, std::ostream* out) { *out << shape.name; }

class RecomputedModels : public testing::TestWithParam<RecomputedModel> {};

TEST_P(RecomputedModels, TrainTheSameBits) {
  const TemporaryDirectory folder;
  const auto with = [&](ModelConfig::Recompute recompute, int every = 0) {
    config::RunConfig config = tiny_run(folder, GetParam().config);
    config.mutable_model()->set_recompute(recompute);
    config.mutable_model()->set_checkpoint_every(every);
    return losses_and_state(config);
  };
  const auto plain = with(ModelConfig::NONE);
  EXPECT_EQ(with(ModelConfig::CHEAP), plain);
  EXPECT_EQ(with(ModelConfig::BLOCK), plain);
  EXPECT_EQ(with(ModelConfig::BLOCK, 2), plain);
}

INSTANTIATE_TEST_SUITE_P(
    Models, RecomputedModels,
    testing::Values(
        RecomputedModel{"Gpt2WithDropoutAndLeaves",
                        "model { gpt2 { layers: 3 } } train { micro_batch_size: 2 leaves: 2 }"},
        RecomputedModel{"Gpt2WithDropoutInBf16",
                        "precision: BF16_MIXED model { gpt2 { layers: 3 } }"},
        RecomputedModel{"Gpt2WithoutDropoutInBf16",
                        "precision: BF16_MIXED model { gpt2 { layers: 3 dropout: 0 } }"},
        RecomputedModel{"Gpt2WithDropoutInF16",
                        "precision: F16_MIXED model { gpt2 { layers: 2 } }"},
        RecomputedModel{"Gpt2WithoutDropoutInF16",
                        "precision: F16_MIXED model { gpt2 { layers: 2 dropout: 0 } }"},
        RecomputedModel{"Gpt2OnHost", "device: \"host:0\" model { gpt2 { layers: 3 } }"},
        RecomputedModel{"Llama",
                        "model { llama { context_length: 16 layers: 3 heads: 2 width: 16 } }"},
        RecomputedModel{"LlamaWithGroupedHeadsInF16",
                        "precision: F16_MIXED model { llama { context_length: 16 layers: 3 heads: "
                        "4 kv_heads: 2 width: 32 } }"},
        RecomputedModel{"LlamaWithGroupedHeadsInBf16",
                        "precision: BF16_MIXED model { llama { context_length: 16 layers: 3 heads: "
                        "4 kv_heads: 2 width: 32 } }"},
        RecomputedModel{"Resnet",
                        "model { resnet { channels: 1 height: 8 width: 8 classes: 10 base_width: 8 "
                        "blocks: [1, 2] } } data { random {} } train { micro_batch_size: 4 }"},
        RecomputedModel{
            "Perceptron",
            "model { mlp { inputs: 16 classes: 4 hidden_widths: [8, 8, 8] } } data { random {} }"}),
    [](const auto& shape) { return shape.param.name; });

TEST(Recompute, ChangesNoBitOnSeveralRanksWithAnyStrategy) {
  const TemporaryDirectory folder;
  const std::string more =
      "reproducibility: BITWISE precision: F16_MIXED train { batch_size: 8 micro_batch_size: 1 } "
      "model { llama { vocab_size: 300 context_length: 16 layers: 3 heads: 2 kv_heads: 1 width: 64 "
      "} } ";
  const Trace plain = trace(tiny_run(folder, more), 3);
  for (const auto recompute : {ModelConfig::NONE, ModelConfig::CHEAP, ModelConfig::BLOCK}) {
    for (const char* strategy : {"DDP", "FULL_SHARD", "SHARD_GRAD_OP"}) {
      config::RunConfig config =
          tiny_run(folder, more + fmt::format("parallel {{ strategy: {} }}", strategy));
      config.mutable_model()->set_recompute(recompute);
      for (const Trace& each : traces(config, 2, 3)) {
        EXPECT_EQ(each, plain) << ModelConfig::Recompute_Name(recompute) << ' ' << strategy;
      }
    }
  }
}

// Memory ---------------------------------------------------------------------------------------

/// Blocks whose activations are larger than the rest of the step.
std::string large(const char* model, const char* precision, const char* recompute) {
  return fmt::format(
      "device: \"host:0\" precision: {} train {{ batch_size: 8 micro_batch_size: 8 }} model {{ {} "
      "recompute: {} }}",
      precision, model, recompute);
}

TEST(Recompute, ThePlanIsThePeakThatIsMeasured) {
  const TemporaryDirectory folder;
  for (const char* model :
       {"gpt2 { context_length: 128 layers: 6 heads: 4 width: 128 dropout: 0 }",
        "gpt2 { context_length: 128 layers: 6 heads: 4 width: 128 dropout: 0.1 }",
        "llama { context_length: 128 layers: 6 heads: 4 kv_heads: 2 width: 128 }"}) {
    double before = 0;
    for (const char* recompute : {"NONE", "CHEAP", "BLOCK"}) {
      const config::RunConfig config = tiny_run(folder, large(model, "F32", recompute));
      const RunPlan plan = plan_run(config, 1);
      EXPECT_NEAR(static_cast<double>(plan.peak_bytes) / static_cast<double>(measured_peak(config)),
                  1, 0.03)
          << model << ' ' << recompute;
      const auto activations = static_cast<double>(plan.activation_bytes);
      if (before > 0) {
        EXPECT_LT(activations, before * 0.8) << model << ' ' << recompute;
      }
      before = activations;
    }
  }
}

TEST(Recompute, SavesMemoryInMixedPrecisionToo) {
  const TemporaryDirectory folder;
  for (const char* model :
       {"gpt2 { context_length: 128 layers: 6 heads: 4 width: 128 dropout: 0 }",
        "llama { context_length: 128 layers: 6 heads: 4 kv_heads: 2 width: 128 }"}) {
    const auto activations = [&](const char* recompute) {
      return plan_run(tiny_run(folder, large(model, "BF16_MIXED", recompute)), 1).activation_bytes;
    };
    EXPECT_LT(activations("CHEAP"), activations("NONE") * 8 / 10) << model;
    EXPECT_LT(activations("BLOCK"), activations("CHEAP") * 8 / 10) << model;
  }
}

/// Activation bytes of the character-level GPT in training, for so many layers.
int64_t char_activations(int layers, std::vector<std::string> overrides = {}) {
  const std::vector<std::string> files{LOCKSTEP_SOURCE_DIR "/configs/examples/bench_char.txtpb"};
  overrides.push_back(fmt::format("model.gpt2.layers={}", layers));
  return plan_run(config::load(files, overrides)).activation_bytes;
}

constexpr int64_t kInput = int64_t{8} * 256 * 384 * 4;  // batch, context, width, f32

TEST(RecomputedBlocks, NeedTheBlocksInputsAndOneBlock) {
  const int64_t of_one_block = char_activations(1);
  const int64_t plain = char_activations(6);
  const int64_t each = char_activations(6, {"model.recompute=BLOCK"});
  // Hooks keep what a recomputed block saves, so that no gradient is written over it as in a block
  // that is not recomputed: that takes another input's memory at the worst moment.
  EXPECT_LE(each, of_one_block + 7 * kInput);
  EXPECT_EQ(each, char_activations(6, {"model.checkpoint_every=1"}));
  EXPECT_GT(plain, 3 * (of_one_block + 7 * kInput));
  // Two blocks per checkpoint: half of the inputs, and the activations of two blocks.
  EXPECT_LE(char_activations(6, {"model.checkpoint_every=2"}), char_activations(2) + 4 * kInput);
}

TEST(CheaplyRecomputedBlocks, KeepTenOfSixteenRows) {
  // Of one more block: its input, queries, keys, values, attention, its projection, and four times
  // the width before the gelu; without recomputation also two norms, a sum, and the gelu.
  const auto of_a_block = [](std::vector<std::string> overrides) {
    return char_activations(6, overrides) - char_activations(5, overrides);
  };
  constexpr int64_t kStatistics = kInput / 16;
  EXPECT_NEAR(of_a_block({}), 16 * kInput, kStatistics);
  EXPECT_NEAR(of_a_block({"model.recompute=CHEAP"}), 10 * kInput, kStatistics);
  // On a GPU the gelu is kept: a product computes it from what it does not store.
  EXPECT_NEAR(of_a_block({"model.recompute=CHEAP", "device=cuda"}), 14 * kInput, kStatistics);
}

// Config ---------------------------------------------------------------------------------------

TEST(RecomputeField, FollowsFromCheckpointEvery) {
  const TemporaryDirectory folder;
  const auto of = [&](const std::string& more) {
    return tiny_run(folder, more).model().recompute();
  };
  EXPECT_EQ(of(""), ModelConfig::NONE);
  EXPECT_EQ(of("model { checkpoint_every: 0 }"), ModelConfig::NONE);
  EXPECT_EQ(of("model { checkpoint_every: 2 }"), ModelConfig::BLOCK);
  EXPECT_EQ(of("model { checkpoint_every: 0 recompute: BLOCK }"), ModelConfig::BLOCK);
}

TEST(RecomputeField, DoesNotContradictCheckpointEvery) {
  const TemporaryDirectory folder;
  EXPECT_THROWS(tiny_run(folder, "model { checkpoint_every: -1 }"), ConfigError,
                "model.checkpoint_every");
  for (const char* other : {"NONE", "CHEAP"}) {
    EXPECT_THROWS(
        tiny_run(folder, fmt::format("model {{ checkpoint_every: 2 recompute: {} }}", other)),
        ConfigError, "model.recompute: BLOCK only");
  }
}

}  // namespace
}  // namespace lockstep::train
