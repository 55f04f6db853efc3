// model.checkpoint_every: less memory, the same bits.

#include <gtest/gtest.h>

#include "tests/autograd/throws.h"
#include "tests/train/tiny_run.h"
#include "train/run/plan.h"

namespace lockstep::train {
namespace {

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

struct CheckpointedModel {
  const char* name;
  const char* config;
};
void PrintTo(const CheckpointedModel& shape, std::ostream* out) { *out << shape.name; }

class CheckpointEvery : public testing::TestWithParam<CheckpointedModel> {};

TEST_P(CheckpointEvery, TrainsTheSameBits) {
  const TemporaryDirectory folder;
  const auto with = [&](int every) {
    config::RunConfig config = tiny_run(folder, GetParam().config);
    config.mutable_model()->set_checkpoint_every(every);
    return config;
  };
  const auto plain = losses_and_state(with(0));
  EXPECT_EQ(losses_and_state(with(1)), plain);
  EXPECT_EQ(losses_and_state(with(2)), plain);
}

INSTANTIATE_TEST_SUITE_P(
    Models, CheckpointEvery,
    testing::Values(
        CheckpointedModel{"Gpt2WithDropoutAndLeaves",
                          "model { gpt2 { layers: 3 } } train { micro_batch_size: 2 leaves: 2 }"},
        CheckpointedModel{"Llama",
                          "model { llama { context_length: 16 layers: 3 heads: 2 width: 16 } }"},
        CheckpointedModel{
            "Resnet",
            "model { resnet { channels: 1 height: 8 width: 8 classes: 10 base_width: 8 "
            "blocks: [1, 2] } } data { random {} } train { micro_batch_size: 4 }"},
        CheckpointedModel{
            "Perceptron",
            "model { mlp { inputs: 16 classes: 4 hidden_widths: [8, 8, 8] } } data { random {} }"}),
    [](const auto& shape) { return shape.param.name; });

/// Activation bytes of the character-level GPT in training, for so many layers.
int64_t char_activations(int layers, int every) {
  const std::vector<std::string> files{LOCKSTEP_SOURCE_DIR "/configs/examples/bench_char.txtpb"};
  const std::vector<std::string> overrides{fmt::format("model.gpt2.layers={}", layers),
                                           fmt::format("model.checkpoint_every={}", every)};
  return plan_run(config::load(files, overrides)).activation_bytes;
}

TEST(CheckpointedChar, NeedsTheBlocksInputsAndOneBlock) {
  constexpr int64_t kInput = int64_t{8} * 256 * 384 * 4;  // batch, context, width, f32
  const int64_t of_one_block = char_activations(1, 0);
  const int64_t plain = char_activations(6, 0);
  EXPECT_LE(char_activations(6, 1), of_one_block + 6 * kInput);
  EXPECT_GT(plain, 3 * (of_one_block + 6 * kInput));
  // Two blocks per checkpoint: half of the inputs, and the activations of two blocks.
  EXPECT_LE(char_activations(6, 2), char_activations(2, 0) + 3 * kInput);
}

TEST(CheckpointedChar, NegativeNumbersOfBlocksAreRefused) {
  const TemporaryDirectory folder;
  EXPECT_THROWS(tiny_run(folder, "model { checkpoint_every: -1 }"), ConfigError,
                "model.checkpoint_every");
}

}  // namespace
}  // namespace lockstep::train
