#include "train/weights/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/ops/factory/copy.h"
#include "core/tensor/generator.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"
#include "data/tokenizers/sentencepiece_training.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"
#include "tests/train/tiny_models.h"
#include "tests/train/weights/gguf_file.h"

namespace lockstep::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class GgufModel : public testing::Test {
 protected:
  GgufModel() { manual_seed(1); }
  GgufFile written(const nn::LanguageModel& model, DType dtype = DType::kF32,
                   const Tokenizer* tokenizer = nullptr) const {
    save_gguf(model, tokenizer, folder_ / "model.gguf", dtype, "tiny");
    return GgufFile(file_content(folder_ / "model.gguf"));
  }
  TemporaryDirectory folder_;
};

/// The value of a file's metadata, or "none".
std::string member_of(const GgufFile& file, const std::string& key) {
  for (const std::string& each : file.metadata()) {
    if (each.starts_with(key + " = ")) return each.substr(key.size() + 3);
  }
  return "none";
}

std::string bytes_as(const Tensor& tensor, DType dtype) {
  const Tensor here = tensor.detach().to(dtype).contiguous();
  return {static_cast<const char*>(here.data()), here.nbytes()};
}

TEST_F(GgufModel, DescribesAGpt2) {
  EXPECT_THAT(written(nn::Gpt2(tiny_gpt2(3))).metadata(),
              ElementsAre("general.architecture = text gpt2", "gpt2.context_length = u32 8",
                          "gpt2.embedding_length = u32 6", "gpt2.feed_forward_length = u32 24",
                          "gpt2.block_count = u32 3", "gpt2.attention.head_count = u32 2",
                          "gpt2.attention.layer_norm_epsilon = f32 1e-05",
                          "general.name = text tiny", "general.file_type = u32 0"));
}

TEST_F(GgufModel, DescribesALlama) {
  nn::LlamaOptions options = tiny_llama();
  options.rope_scaling = nn::LinearRopeScaling{4};
  EXPECT_THAT(
      written(nn::Llama(options), DType::kBF16).metadata(),
      ElementsAre("general.architecture = text llama", "llama.vocab_size = u32 11",
                  "llama.context_length = u32 8", "llama.embedding_length = u32 8",
                  "llama.feed_forward_length = u32 12", "llama.block_count = u32 1",
                  "llama.attention.head_count = u32 2", "llama.attention.head_count_kv = u32 1",
                  "llama.attention.layer_norm_rms_epsilon = f32 1e-05",
                  "llama.rope.dimension_count = u32 4", "llama.rope.freq_base = f32 10000",
                  "llama.rope.scaling.type = text linear", "llama.rope.scaling.factor = f32 4",
                  "general.name = text tiny", "general.file_type = u32 32"));
  EXPECT_THAT(written(nn::Llama(tiny_llama())).metadata(),
              Not(Contains(HasSubstr("rope.scaling"))));
  EXPECT_THAT(written(nn::Llama(tiny_llama()), DType::kF16).metadata(),
              Contains("general.file_type = u32 1"));
}

TEST_F(GgufModel, RefusesWhatTheFormatCannotSay) {
  nn::LlamaOptions options = tiny_llama();
  options.rope_scaling = nn::YarnRopeScaling{2, 8};
  expect_error<ConfigError>([&] { (void)written(nn::Llama(options)); },
                            "expected linear scaling or none. Use --to hf.");
  expect_error<DTypeError>([&] { (void)written(nn::Llama(tiny_llama()), DType::kF64); },
                           "expected float32, bfloat16 or float16 for the matrices, got float64");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(GgufModel, HoldsEveryTensorOfAGpt2UnderItsName) {
  const nn::Gpt2 model(tiny_gpt2(2));
  const GgufFile file = written(model, DType::kBF16);
  EXPECT_THAT(std::vector(file.names().begin(), file.names().begin() + 14),
              ElementsAre("token_embd.weight", "position_embd.weight", "blk.0.attn_norm.weight",
                          "blk.0.attn_norm.bias", "blk.0.attn_qkv.weight", "blk.0.attn_qkv.bias",
                          "blk.0.attn_output.weight", "blk.0.attn_output.bias",
                          "blk.0.ffn_norm.weight", "blk.0.ffn_norm.bias", "blk.0.ffn_up.weight",
                          "blk.0.ffn_up.bias", "blk.0.ffn_down.weight", "blk.0.ffn_down.bias"));
  EXPECT_EQ(file.names()[14], "blk.1.attn_norm.weight");
  const std::vector<nn::StoredParameter> stored = model.stored_parameters();
  ASSERT_EQ(file.names().size(), stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    const Tensor& tensor = stored[i].tensor;
    const GgufFile::TensorInfo& found = file.tensor(file.names()[i]);
    const bool is_matrix = tensor.dim() > 1;
    EXPECT_EQ(found.type, is_matrix ? 30u : 0u) << stored[i].name;
    EXPECT_EQ(found.sizes.size(), static_cast<size_t>(tensor.dim()));
    EXPECT_EQ(static_cast<int64_t>(found.sizes.front()), tensor.sizes().back());
    EXPECT_EQ(static_cast<int64_t>(found.sizes.back()), tensor.sizes().front());
    EXPECT_EQ(found.bytes, bytes_as(tensor, is_matrix ? DType::kBF16 : DType::kF32))
        << stored[i].name;
  }
}

TEST_F(GgufModel, HasTheHalvesOfLlamasHeadsInterleaved) {
  const nn::Llama model(tiny_llama());
  const GgufFile file = written(model, DType::kF32);
  EXPECT_THAT(file.names(),
              ElementsAre("token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
                          "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                          "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
                          "blk.0.ffn_down.weight", "output_norm.weight", "output.weight"));
  const std::vector<nn::StoredParameter> stored = model.stored_parameters();
  ASSERT_EQ(file.names().size(), stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    const std::string& name = file.names()[i];
    std::string expected = bytes_as(stored[i].tensor, DType::kF32);
    if (name == "blk.0.attn_q.weight" || name == "blk.0.attn_k.weight") {
      // Heads of depth 4: rows 0, 1, 2, 3 of each become 0, 2, 1, 3.
      const size_t row = 8 * sizeof(float);
      for (size_t head = 0; head < expected.size(); head += 4 * row) {
        std::swap_ranges(expected.begin() + static_cast<std::ptrdiff_t>(head + row),
                         expected.begin() + static_cast<std::ptrdiff_t>(head + 2 * row),
                         expected.begin() + static_cast<std::ptrdiff_t>(head + 2 * row));
      }
    }
    EXPECT_EQ(file.tensor(name).bytes, expected) << name;
  }
}

TEST_F(GgufModel, HoldsABpeTokenizerAndRowsThatNoTokenHas) {
  const BpeTokenizer tokenizer = make_bpe(the_bpe(), folder_);  // 263 tokens
  nn::Gpt2Options options = tiny_gpt2(1);
  options.vocabulary = 265;
  const GgufFile file = written(nn::Gpt2(options), DType::kF32, &tokenizer);
  const std::vector<std::string> metadata(file.metadata().begin() + 9, file.metadata().end());
  ASSERT_EQ(metadata.size(), 9u);
  EXPECT_EQ(metadata[0], "tokenizer.ggml.model = text gpt2");
  EXPECT_EQ(metadata[1], "tokenizer.ggml.pre = text gpt-2");
  EXPECT_THAT(metadata[2], testing::StartsWith("tokenizer.ggml.tokens = text ["));
  EXPECT_THAT(metadata[2], testing::EndsWith(" aa <|endoftext|> [PAD263] [PAD264]]"));
  EXPECT_THAT(metadata[3], testing::StartsWith("tokenizer.ggml.token_type = i32 [1 1 1 "));
  EXPECT_THAT(metadata[3], testing::EndsWith(" 1 1 3 5 5]"));
  EXPECT_EQ(metadata[4],
            "tokenizer.ggml.merges = text [t h \u0120 t th e \u0120t h \u0120th e a a]");
  EXPECT_EQ(metadata[5], "tokenizer.ggml.bos_token_id = u32 262");
  EXPECT_EQ(metadata[6], "tokenizer.ggml.eos_token_id = u32 262");
  EXPECT_EQ(metadata[7], "tokenizer.ggml.padding_token_id = u32 262");
  EXPECT_EQ(metadata[8], "tokenizer.ggml.add_bos_token = bool false");
}

SentencePieceTokenizer tokenizer_of_scores() {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "the cat and the dog. ";
  return {train_sentencepiece(text, 280), "a model"};
}

TEST_F(GgufModel, HoldsASentencePieceModelWithItsScores) {
  const SentencePieceTokenizer tokenizer = tokenizer_of_scores();
  nn::LlamaOptions options = tiny_llama();
  options.vocabulary = tokenizer.vocabulary();
  const GgufFile file = written(nn::Llama(options), DType::kF32, &tokenizer);
  const auto member = [&](const std::string& key) { return member_of(file, key); };
  EXPECT_EQ(member("tokenizer.ggml.model"), "text llama");
  EXPECT_EQ(member("tokenizer.ggml.pre"), "text default");
  EXPECT_THAT(member("tokenizer.ggml.tokens"), testing::StartsWith("text [<unk> <s> </s> <0x00> "));
  EXPECT_THAT(member("tokenizer.ggml.token_type"), testing::StartsWith("i32 [2 3 3 6 6 "));
  EXPECT_THAT(member("tokenizer.ggml.token_type"), testing::EndsWith(" 1 1]"));
  EXPECT_THAT(member("tokenizer.ggml.scores"), testing::StartsWith("f32 [0 0 0 0 "));
  EXPECT_THAT(member("tokenizer.ggml.scores"), HasSubstr(" -0 -1 -2 -3"));
  EXPECT_EQ(member("tokenizer.ggml.add_space_prefix"),
            tokenizer.adds_space() ? "bool true" : "bool false");
  EXPECT_EQ(member("tokenizer.ggml.merges"), "none");
  EXPECT_EQ(member("tokenizer.ggml.bos_token_id"), "u32 1");
  EXPECT_EQ(member("tokenizer.ggml.eos_token_id"), "u32 2");
}

TEST_F(GgufModel, RowsThatNoTokenOfASentencePieceModelHasAreUnusedAndScoreZero) {
  const SentencePieceTokenizer tokenizer = tokenizer_of_scores();
  nn::LlamaOptions options = tiny_llama();
  options.vocabulary = tokenizer.vocabulary() + 2;
  const GgufFile file = written(nn::Llama(options), DType::kF32, &tokenizer);
  EXPECT_THAT(member_of(file, "tokenizer.ggml.token_type"), testing::EndsWith(" 1 1 5 5]"));
  EXPECT_THAT(member_of(file, "tokenizer.ggml.scores"), testing::EndsWith(" 0 0]"));
}

}  // namespace
}  // namespace lockstep::train
