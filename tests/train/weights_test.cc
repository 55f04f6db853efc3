#include "train/weights.h"

#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/generator.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/train/tiny_models.h"
#include "train/build.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {
namespace {

using Model = nn::Module;

/// Message of the CheckpointError thrown when loading `path` into `model`.
std::string refusal(Model& model, const std::filesystem::path& path) {
  return message_of<CheckpointError>([&] { load_weights(model, path); });
}

template <class ModelType, class Options>
std::unique_ptr<ModelType> make(const Options& options, uint64_t seed) {
  manual_seed(seed);
  return std::make_unique<ModelType>(options);
}

std::string prefixed(const std::string& name) { return "transformer." + name; }

TEST(Weights, ARoundTripGivesTheSameBits) {
  const TemporaryDirectory folder;
  const auto saved = make<nn::Gpt2>(tiny_gpt2(), 1);
  save_weights(*saved, folder / "model.safetensors");
  const auto loaded = make<nn::Gpt2>(tiny_gpt2(), 2);
  ASSERT_FALSE(same_parameters(*saved, *loaded));
  load_weights(*loaded, folder / "model.safetensors");
  EXPECT_TRUE(same_parameters(*saved, *loaded));
  for (const Tensor& parameter : loaded->parameters()) EXPECT_TRUE(parameter.requires_grad());
}

TEST(Weights, ProjectionsAreWrittenInputByOutput) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2());
  save_weights(model, folder / "model.safetensors");
  const SafetensorsFile file(folder / "model.safetensors");
  EXPECT_EQ(file.at("h.0.attn.c_attn.weight").shape, (std::vector<int64_t>{6, 18}));
  EXPECT_EQ(file.at("wte.weight").shape, (std::vector<int64_t>{11, 6}));
}

TEST(Weights, Gpt2FilesMayHaveThePrefixOfTheWholeModel) {
  const TemporaryDirectory folder;
  const auto saved = make<nn::Gpt2>(tiny_gpt2(), 1);
  OwnedTensors tensors(*saved, prefixed);
  // Old files also contain the causal mask.
  tensors.add("transformer.h.0.attn.bias", ones({1, 1, 8, 8}));
  tensors.add("transformer.h.1.attn.masked_bias", scalar_tensor(-1e4));
  write_safetensors(folder / "w", tensors.records());
  const auto loaded = make<nn::Gpt2>(tiny_gpt2(), 2);
  load_weights(*loaded, folder / "w");
  EXPECT_TRUE(same_parameters(*saved, *loaded));
}

TEST(Weights, LlamaFilesMayLackThePrefixOfTheBody) {
  const TemporaryDirectory folder;
  const auto saved = make<nn::Llama>(tiny_llama(), 1);
  OwnedTensors tensors(*saved, [](const std::string& name) {
    return name.starts_with("model.") ? name.substr(6) : name;
  });
  tensors.add("layers.0.self_attn.rotary_emb.inv_freq", ones({2}));
  write_safetensors(folder / "w", tensors.records());
  const auto loaded = make<nn::Llama>(tiny_llama(), 2);
  load_weights(*loaded, folder / "w");
  EXPECT_TRUE(same_parameters(*saved, *loaded));
}

TEST(Weights, ANameInBothSpellingsIsAmbiguous) {
  const TemporaryDirectory folder;
  nn::Llama model(tiny_llama());
  OwnedTensors tensors(model);
  tensors.add("norm.weight", ones({8}));
  write_safetensors(folder / "w", tensors.records());
  EXPECT_TRUE(
      says(refusal(model, folder / "w"), "ambiguous model.norm.weight: there is norm.weight too"));
}

class TiedHead : public testing::TestWithParam<bool> {
 protected:
  TiedHead() {
    if (GetParam()) {
      model_ = std::make_unique<nn::Gpt2>(tiny_gpt2());
    } else {
      model_ = std::make_unique<nn::Llama>(tiny_llama(true));
    }
  }
  std::string embedding() const { return GetParam() ? "wte.weight" : "model.embed_tokens.weight"; }

  std::unique_ptr<Model> model_;
  TemporaryDirectory folder_;
};

TEST_P(TiedHead, InAFileIsAcceptedWhenItEqualsTheEmbedding) {
  OwnedTensors tensors(*model_);
  tensors.add("lm_head.weight", tensors.at(embedding()).clone());
  write_safetensors(folder_ / "w", tensors.records());
  EXPECT_NO_THROW(load_weights(*model_, folder_ / "w"));
}

TEST_P(TiedHead, InAFileIsListedWhenItDiffers) {
  OwnedTensors tensors(*model_);
  const Tensor head = tensors.at(embedding()).clone();
  head.data<float>()[5] += 1;
  tensors.add("lm_head.weight", head);
  write_safetensors(folder_ / "w", tensors.records());
  EXPECT_TRUE(
      says(refusal(*model_, folder_ / "w"), "lm_head.weight in w: differs from " + embedding()));
}

INSTANTIATE_TEST_SUITE_P(Models, TiedHead, testing::Bool(),
                         [](const auto& info) { return info.param ? "gpt2" : "llama"; });

TEST(Weights, FloatsOfOtherTypesAreConverted) {
  const NoGradGuard no_grad;
  const TemporaryDirectory folder;
  const auto exact = make<nn::Gpt2>(tiny_gpt2(), 1);
  // Values that every floating dtype represents exactly.
  for (const Tensor& parameter : exact->parameters()) {
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      parameter.data<float>()[i] = static_cast<float>((7 * i) % 101 - 50) / 16;
    }
  }
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF64}) {
    OwnedTensors tensors(*exact);
    OwnedTensors converted(*exact);
    for (const TensorRecord& record : tensors.records()) {
      converted.erase(record.name);
      converted.add(record.name, tensors.at(record.name).to(dtype));
    }
    write_safetensors(folder / "w", converted.records());
    const auto loaded = make<nn::Gpt2>(tiny_gpt2(), 2);
    load_weights(*loaded, folder / "w");
    EXPECT_TRUE(same_parameters(*exact, *loaded)) << name(dtype);
  }
}

TEST(Weights, EveryTensorThatDoesNotFitIsListed) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2());
  OwnedTensors tensors(model);
  for (const char* name : {"h.1.ln_2.bias", "wpe.weight", "wte.weight", "ln_f.bias"}) {
    tensors.erase(name);
  }
  tensors.add("wpe.weight", ones({9, 6}));
  tensors.add("wte.weight", ones({11, 6}, DType::kI64));
  tensors.add("h.2.ln_1.bias", ones({6}));
  tensors.add("lm_head.weight", ones({11, 6}));
  write_safetensors(folder / "w", tensors.records());
  const std::string path = (folder / "w").string();
  EXPECT_EQ(refusal(model, folder / "w"), "[weights] " + path + " does not fit the model:" + R"(
  wte.weight in w: expected float32[11, 6], got int64[11, 6]
  wpe.weight in w: expected float32[8, 6], got float32[9, 6]
  missing h.1.ln_2.bias
  missing ln_f.bias
  unexpected h.2.ln_1.bias in w
  lm_head.weight in w: differs from wte.weight, which the model uses in its place)");
}

TEST(Weights, AFileThatDoesNotFitLeavesTheModelAsItWas) {
  const TemporaryDirectory folder;
  const auto model = make<nn::Gpt2>(tiny_gpt2(), 1);
  const auto same = make<nn::Gpt2>(tiny_gpt2(), 1);
  OwnedTensors tensors(*make<nn::Gpt2>(tiny_gpt2(), 2));
  tensors.erase("ln_f.bias");
  write_safetensors(folder / "w", tensors.records());
  EXPECT_TRUE(says(refusal(*model, folder / "w"), "missing ln_f.bias"));
  EXPECT_TRUE(same_parameters(*model, *same));
}

TEST(Weights, AnErrorInAFoldersConfigNamesTheFile) {
  const TemporaryDirectory folder;
  save_weights(*make<nn::Llama>(tiny_llama(), 1), folder / "model.safetensors");
  const std::string path = (folder / "config.json").string();
  put_file(path, R"({"model_type": "bert"})");
  EXPECT_EQ(
      message_of<ConfigError>([&] { load_model(folder.path()); }),
      "[config.json] " + path + ": model_type is not supported: expected gpt2 or llama, got bert.");
  put_file(path, "{");
  EXPECT_TRUE(says(message_of<ConfigError>([&] { load_model(folder.path()); }),
                   "[config.json] " + path + ": cannot be read: "));
}

TEST(Weights, AModelIsLoadedFromItsFolder) {
  const TemporaryDirectory folder;
  const auto saved = make<nn::Llama>(tiny_llama(), 1);
  save_weights(*saved, folder / "model.safetensors");
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { load_model(folder.path()); }), "config.json"));
  put_file(folder / "config.json", saved->hugging_face_config());
  const auto loaded = load_model(folder.path());
  EXPECT_TRUE(same_parameters(*saved, *loaded));
  EXPECT_FALSE(loaded->is_training());
}

config::RunConfig run_from(const std::filesystem::path& weights) {
  return config::load_text(
      "model { gpt2 { vocab_size: 11 context_length: 8 layers: 2 heads: 2 "
      "width: 6 } weights: \"" +
      weights.string() + "\" }\ndata { random {} }\ntrain { steps: 1 batch_size: 1 }");
}

TEST(Weights, ARunStartsFromTheWeightsItsConfigNames) {
  const TemporaryDirectory folder;
  const auto saved = make<nn::Gpt2>(tiny_gpt2(), 1);
  save_weights(*saved, folder / "model.safetensors");
  EXPECT_TRUE(same_parameters(*build_model(run_from(folder.path())), *saved));
  EXPECT_TRUE(same_parameters(*build_model(run_from(folder / "model.safetensors")), *saved));
  EXPECT_FALSE(same_parameters(*build_model(run_from("")), *saved));
  save_weights(*make<nn::Gpt2>(tiny_gpt2(3), 1), folder / "model.safetensors");
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { build_model(run_from(folder.path())); }),
                   "unexpected h.2.attn.c_attn.weight in model.safetensors"));
}

}  // namespace
}  // namespace lockstep::train
