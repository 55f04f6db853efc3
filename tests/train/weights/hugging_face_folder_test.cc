#include "train/weights/hugging_face_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/tensor/generator.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/train/tiny_models.h"
#include "train/weights.h"
#include "train/weights/weight_files.h"

namespace lockstep::train {
namespace {

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

/// Bytes of tensors per file of `folder`, by file name.
std::map<std::string, int64_t> tensor_bytes(const std::filesystem::path& folder) {
  std::map<std::string, int64_t> bytes;
  const WeightFiles files(folder);
  for (const auto& [name, entry] : files.tensors()) {
    bytes[entry.file] += static_cast<int64_t>(entry.tensor.bytes.size());
  }
  return bytes;
}

TEST(HuggingFaceFolder, SmallModelsHaveOneFile) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2());
  save_hugging_face(model, folder / "out");
  EXPECT_EQ(names_in(folder / "out"), (std::set<std::string>{"config.json", "model.safetensors"}));
  EXPECT_TRUE(same_parameters(*load_model(folder / "out"), model));
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"out"}));
}

TEST(HuggingFaceFolder, ShardsHoldAtMostTheLimitAndTheIndexNamesThemAll) {
  const TemporaryDirectory folder;
  nn::Llama model(tiny_llama());
  save_hugging_face(model, folder / "out", 900);
  const std::map<std::string, int64_t> bytes = tensor_bytes(folder / "out");
  ASSERT_GT(bytes.size(), 2U);
  size_t i = 0;
  int64_t total = 0;
  for (const auto& [file, size] : bytes) {
    EXPECT_EQ(file, fmt::format("model-{:05}-of-{:05}.safetensors", ++i, bytes.size()));
    EXPECT_LE(size, 900);
    total += size;
  }
  EXPECT_EQ(total, 4 * model.parameter_count());
  const auto index =
      nlohmann::json::parse(file_content(folder / "out/model.safetensors.index.json"));
  EXPECT_EQ(index.at("metadata").at("total_size"), total);
  EXPECT_EQ(index.at("weight_map").size(), model.stored_parameters().size());
  EXPECT_EQ(index.at("weight_map").at("model.embed_tokens.weight"), bytes.begin()->first);
  EXPECT_EQ(index.at("weight_map").at("lm_head.weight"), bytes.rbegin()->first);
  EXPECT_EQ(names_in(folder / "out").size(), bytes.size() + 2);
  EXPECT_TRUE(same_parameters(*load_model(folder / "out"), model));
}

TEST(HuggingFaceFolder, ATensorLargerThanTheLimitHasAFileOfItsOwn) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2(1));
  save_hugging_face(model, folder / "out", 1);
  EXPECT_EQ(tensor_bytes(folder / "out").size(), model.stored_parameters().size());
  EXPECT_TRUE(same_parameters(*load_model(folder / "out"), model));
}

TEST(HuggingFaceFolder, ElementsAreWrittenInTheTypeThatConfigJsonNames) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2());
  save_hugging_face(model, folder / "out", kMaxShardBytes, DType::kBF16);
  const auto config = nlohmann::json::parse(file_content(folder / "out/config.json"));
  EXPECT_EQ(config.at("torch_dtype"), "bfloat16");
  EXPECT_EQ(config.at("model_type"), "gpt2");
  const WeightFiles files(folder / "out");
  for (const auto& [name, entry] : files.tensors()) EXPECT_EQ(entry.tensor.dtype, DType::kBF16);
  // Rounding to bfloat16 a second time changes nothing.
  const auto rounded = load_model(folder / "out");
  EXPECT_FALSE(same_parameters(*rounded, model));
  save_hugging_face(*rounded, folder / "again", kMaxShardBytes, DType::kBF16);
  EXPECT_EQ(file_content(folder / "again/model.safetensors"),
            file_content(folder / "out/model.safetensors"));
}

TEST(HuggingFaceFolder, WhatExistsIsNotTouched) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2(1));
  std::filesystem::create_directory(folder / "empty");
  put_file(folder / "file", "mine");
  for (const char* name : {"empty", "file"}) {
    EXPECT_TRUE(says(message_of<ConfigError>([&] { save_hugging_face(model, folder / name); }),
                     "exists already"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder / "empty"));
  EXPECT_EQ(file_content(folder / "file"), "mine");
}

TEST(HuggingFaceFolder, AFailureLeavesNothingBehind) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2(1));
  put_file(folder / "file", "");
  EXPECT_TRUE(says(
      message_of<CheckpointError>([&] { save_hugging_face(model, folder / "file/out"); }), "file"));
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"file"}));
  EXPECT_TRUE(says(message_of<ConfigError>([&] { save_hugging_face(model, folder / "out", 0); }),
                   "[weights] shards of 0 bytes at most: expected a positive number."));
  EXPECT_TRUE(says(
      message_of<DTypeError>([&] { save_hugging_face(model, folder / "out", 100, DType::kI8); }),
      "[weights] int8 cannot hold weights: expected a floating dtype."));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

/// A tokenizer whose files find no room.
class UnwrittenTokenizer : public ByteTokenizer {
 public:
  std::vector<std::string> save(const std::filesystem::path&) const override {
    throw DataError("[test] no space is left.");
  }
};

TEST(HuggingFaceFolder, AFailureWhenMuchIsWrittenLeavesNothingBehindEither) {
  const TemporaryDirectory folder;
  nn::Gpt2 model(tiny_gpt2(1));
  const UnwrittenTokenizer tokenizer;
  EXPECT_TRUE(says(message_of<CheckpointError>([&] {
                     save_hugging_face(model, folder / "out", 5000, DType::kF32, &tokenizer);
                   }),
                   "no space is left"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace lockstep::train
