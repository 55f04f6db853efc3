#include "launcher/checkpoint_convert.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensor/generator.h"
#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/train/tiny_models.h"
#include "train/weights.h"
#include "train/weights/hugging_face_folder.h"
#include "train/weights/llmc_model.h"
#include "train/weights/weight_files.h"

namespace lockstep::launcher {
namespace {

using train::message_of;
using train::says;

class CheckpointConvert : public testing::Test {
 protected:
  CheckpointConvert() {
    manual_seed(1);
    gpt2_ = std::make_unique<nn::Gpt2>(train::tiny_gpt2());
    llama_ = std::make_unique<nn::Llama>(train::tiny_llama());
    train::save_hugging_face(*gpt2_, path("gpt2"));
    train::save_hugging_face(*llama_, path("llama"));
    train::save_llmc_model(*gpt2_, path("gpt2.bin"));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Runs `convert SOURCE DESTINATION more...` with both in the test's folder.
  void convert(const std::string& source, const std::string& destination,
               const std::vector<std::string>& more) const {
    testing::internal::CaptureStdout();
    std::optional<int> status;
    try {
      status = parse(source, destination, more);
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    EXPECT_EQ(status, std::nullopt);
    EXPECT_TRUE(says(testing::internal::GetCapturedStdout(), destination + ": "));
  }
  /// The message for these arguments, which must be a usage error.
  std::string refusal(const std::string& source, const std::string& destination,
                      const std::vector<std::string>& more) const {
    testing::internal::CaptureStderr();
    EXPECT_EQ(parse(source, destination, more), kUsage);
    return testing::internal::GetCapturedStderr();
  }
  std::optional<int> parse(const std::string& source, const std::string& destination,
                           std::vector<std::string> more) const {
    CommandLine line("");
    add_checkpoint_convert(line);
    more.insert(more.begin(), {"lockstep", "convert", path(source), path(destination)});
    std::vector<const char*> words;
    for (const std::string& word : more) words.push_back(word.c_str());
    return line.parse(static_cast<int>(words.size()), words.data());
  }

  train::TemporaryDirectory folder_;
  std::unique_ptr<nn::Gpt2> gpt2_;
  std::unique_ptr<nn::Llama> llama_;
};

TEST_F(CheckpointConvert, HuggingFaceToLlmcAndBackGivesTheSameBits) {
  convert("gpt2", "out.bin", {"--to", "llmc"});
  EXPECT_EQ(train::file_content(path("out.bin")), train::file_content(path("gpt2.bin")));
  convert("out.bin", "back", {"--to", "hf"});
  EXPECT_EQ(train::file_content(path("back/model.safetensors")),
            train::file_content(path("gpt2/model.safetensors")));
}

TEST_F(CheckpointConvert, ShardsAndElementTypesAreAsAsked) {
  convert("llama", "out", {"--to", "hf", "--max-shard-size", "1KB", "--dtype", "bf16"});
  const train::WeightFiles files(path("out"));
  std::map<std::string, size_t> bytes;
  for (const auto& [name, entry] : files.tensors()) {
    EXPECT_EQ(entry.tensor.dtype, DType::kBF16) << name;
    bytes[entry.file] += entry.tensor.bytes.size();
  }
  EXPECT_GT(bytes.size(), 1U);
  for (const auto& [file, size] : bytes) EXPECT_LE(size, 1000U) << file;
  EXPECT_EQ(train::load_model(folder_ / "out")->hugging_face_config(),
            llama_->hugging_face_config());
}

TEST_F(CheckpointConvert, GgufHoldsMetadataAndWeights) {
  convert("llama", "llama.gguf", {"--to", "gguf", "--dtype", "bf16"});
  const std::string file = train::file_content(folder_ / "llama.gguf");
  EXPECT_EQ(file.substr(0, 8), std::string("GGUF\3\0\0\0", 8));
  for (const char* name : {"general.architecture", "llama.attention.head_count_kv",
                           "token_embd.weight", "blk.0.attn_q.weight", "output_norm.weight"}) {
    EXPECT_TRUE(says(file, name)) << name;
  }
  convert("gpt2", "gpt2.gguf", {"--to", "gguf"});
  EXPECT_TRUE(says(train::file_content(folder_ / "gpt2.gguf"), "blk.0.attn_qkv.bias"));
}

TEST_F(CheckpointConvert, ADestinationThatExistsIsRefused) {
  train::put_file(path("taken"), "mine");
  for (const char* to : {"hf", "llmc"}) {
    EXPECT_TRUE(says(message_of<ConfigError>([&] {
                       convert("gpt2", "taken", {"--to", to});
                     }),
                     "taken exists already"));
  }
  EXPECT_EQ(train::file_content(path("taken")), "mine");
}

TEST_F(CheckpointConvert, SourcesThatHoldNoModelAreRefused) {
  train::put_file(path("text"), "no model");
  EXPECT_TRUE(says(message_of<ConfigError>([&] {
                     convert("gone", "out", {"--to", "hf"});
                   }),
                   "gone: no such file or folder"));
  EXPECT_TRUE(says(message_of<ConfigError>([&] {
                     convert("text", "out", {"--to", "hf"});
                   }),
                   "text is neither a folder"));
  EXPECT_TRUE(says(message_of<ConfigError>([&] {
                     convert("llama", "out", {"--to", "llmc"});
                   }),
                   "holds no GPT-2"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(CheckpointConvert, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_TRUE(says(refusal("gpt2", "out", {}), "--to is required"));
  EXPECT_TRUE(says(refusal("gpt2", "out", {"--to", "onnx"}),
                   "--to: expected one of hf, llmc, gguf, got onnx"));
  EXPECT_TRUE(says(refusal("gpt2", "out", {"--to", "hf", "--dtype", "int8"}),
                   "--dtype: expected one of f32, bf16, got int8"));
  EXPECT_TRUE(says(refusal("gpt2", "out", {"--to", "hf", "--max-shard-size", "0"}),
                   "--max-shard-size: expected a number above 0, got 0"));
  EXPECT_THROW(convert("gpt2", "out", {"--to", "llmc", "--max-shard-size", "1GB"}), ConfigError);
}

}  // namespace
}  // namespace lockstep::launcher
