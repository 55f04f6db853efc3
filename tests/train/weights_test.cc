#include "train/weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "core/generator.h"
#include "nn/models/gpt2.h"
#include "tests/train/temporary_directory.h"
#include "train/safetensors.h"

namespace lockstep::train {
namespace {

nn::Gpt2Options small(int64_t layers = 2) {
  nn::Gpt2Options options;
  options.vocabulary = 11;
  options.context_length = 8;
  options.layers = layers;
  options.heads = 2;
  options.width = 6;
  return options;
}

TEST(Weights, ARoundTripGivesTheSameBits) {
  const TemporaryDirectory folder;
  manual_seed(1);
  nn::Gpt2 saved(small());
  save_weights(saved, folder / "model.safetensors");
  manual_seed(2);
  nn::Gpt2 loaded(small());
  load_weights(loaded, folder / "model.safetensors");
  const auto a = saved.parameters();
  const auto b = loaded.parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].nbytes()), 0);
  }
}

TEST(Weights, ProjectionsAreWrittenInputByOutput) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(small());
  save_weights(model, folder / "model.safetensors");
  const SafetensorsFile file(folder / "model.safetensors");
  EXPECT_EQ(file.at("h.0.attn.c_attn.weight").shape, (std::vector<int64_t>{6, 18}));
  EXPECT_EQ(file.at("wte.weight").shape, (std::vector<int64_t>{11, 6}));
}

TEST(Weights, EveryTensorThatDoesNotFitIsListed) {
  const TemporaryDirectory folder;
  nn::Gpt2 two(small(2));
  save_weights(two, folder / "model.safetensors");
  nn::Gpt2 three(small(3));
  const std::string missing =
      message_of<CheckpointError>([&] { load_weights(three, folder / "model.safetensors"); });
  EXPECT_TRUE(says(missing, "missing h.2.attn.c_attn.weight"));
  EXPECT_TRUE(says(missing, "missing h.2.ln_1.bias"));
  nn::Gpt2 one(small(1));
  const std::string unexpected =
      message_of<CheckpointError>([&] { load_weights(one, folder / "model.safetensors"); });
  EXPECT_TRUE(says(unexpected, "unexpected h.1.mlp.c_fc.weight"));
}

}  // namespace
}  // namespace lockstep::train
