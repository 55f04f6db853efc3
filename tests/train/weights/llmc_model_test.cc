#include "train/weights/llmc_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/tensor/generator.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/train/tiny_models.h"

namespace lockstep::train {
namespace {

constexpr int64_t kPositions = 2;
constexpr int64_t kVocabulary = 3;
constexpr int64_t kLayers = 2;
constexpr int64_t kWidth = 4;

/// A file assembled by hand from the documented format, and its expected parameters. Elements are
/// small integers, which every dtype represents exactly, and differ between neighbours.
struct Golden {
  std::string file;
  std::map<std::string, std::vector<float>> parameters;
};

void append(std::string& file, float value, int version) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (version == 3) {
    file.append(reinterpret_cast<const char*>(&bits), 4);
  } else {
    file.append(reinterpret_cast<const char*>(&bits) + 2, 2);  // bfloat16 is the upper half
  }
}

Golden golden(int version, int64_t padded_vocabulary, float padding) {
  Golden result;
  std::array<int32_t, 256> header{
      20240326, version, kPositions, kVocabulary,
      kLayers,  2,       kWidth,     static_cast<int32_t>(padded_vocabulary)};
  result.file.assign(reinterpret_cast<const char*>(header.data()), sizeof(header));
  int next = 0;
  const auto put = [&](const std::string& name, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(next++ % 251 - 100);
      result.parameters[name].push_back(value);
      append(result.file, value, version);
    }
  };
  put("wte.weight", kVocabulary * kWidth);
  for (int64_t i = 0; i < (padded_vocabulary - kVocabulary) * kWidth; ++i) {
    append(result.file, padding, version);
  }
  put("wpe.weight", kPositions * kWidth);
  const std::pair<const char*, int64_t> kinds[] = {{"ln_1.weight", 4},
                                                   {"ln_1.bias", 4},
                                                   {"attn.c_attn.weight", 12 * 4},
                                                   {"attn.c_attn.bias", 12},
                                                   {"attn.c_proj.weight", 4 * 4},
                                                   {"attn.c_proj.bias", 4},
                                                   {"ln_2.weight", 4},
                                                   {"ln_2.bias", 4},
                                                   {"mlp.c_fc.weight", 16 * 4},
                                                   {"mlp.c_fc.bias", 16},
                                                   {"mlp.c_proj.weight", 4 * 16},
                                                   {"mlp.c_proj.bias", 4}};
  for (const auto& [kind, count] : kinds) {
    for (int64_t layer = 0; layer < kLayers; ++layer)
      put(fmt::format("h.{}.{}", layer, kind), count);
  }
  put("ln_f.weight", 4);
  put("ln_f.bias", 4);
  return result;
}

class LlmcModel : public testing::TestWithParam<int> {
 protected:
  static DType dtype() { return GetParam() == 3 ? DType::kF32 : DType::kBF16; }

  TemporaryDirectory folder_;
};

TEST_P(LlmcModel, EveryTensorIsReadFromItsDocumentedPlace) {
  const Golden wanted = golden(GetParam(), 5, -77);
  put_file(folder_ / "model.bin", wanted.file);
  const std::unique_ptr<nn::Gpt2> model = load_llmc_model(folder_ / "model.bin");
  EXPECT_EQ(model->context_length(), kPositions);
  EXPECT_EQ(model->vocabulary(), kVocabulary);
  EXPECT_EQ(model->options().heads, 2);
  EXPECT_EQ(model->options().epsilon, 1e-5);
  const std::vector<nn::NamedParameter> parameters = model->named_parameters();
  ASSERT_EQ(parameters.size(), wanted.parameters.size());
  for (const auto& [name, tensor] : parameters) {
    const std::vector<float>& want = wanted.parameters.at(name);
    ASSERT_EQ(tensor.numel(), static_cast<int64_t>(want.size())) << name;
    EXPECT_EQ(std::memcmp(tensor.data(), want.data(), tensor.nbytes()), 0) << name;
  }
}

TEST_P(LlmcModel, AFileWrittenAgainIsTheSameFile) {
  const Golden wanted = golden(GetParam(), 128, 0);
  put_file(folder_ / "model.bin", wanted.file);
  save_llmc_model(*load_llmc_model(folder_ / "model.bin"), folder_ / "again.bin", dtype());
  EXPECT_EQ(file_content(folder_ / "again.bin"), wanted.file);
}

TEST_P(LlmcModel, TheHeaderNamesMagicVersionAndShape) {
  nn::Gpt2Options options = tiny_gpt2(3);
  options.vocabulary = 129;
  save_llmc_model(nn::Gpt2(options), folder_ / "model.bin", dtype());
  std::array<int32_t, 256> header{};
  const std::string file = file_content(folder_ / "model.bin");
  ASSERT_GE(file.size(), sizeof(header));
  std::memcpy(header.data(), file.data(), sizeof(header));
  const std::array<int32_t, 256> wanted{20240326, GetParam(), 8, 129, 3, 2, 6, 256};
  EXPECT_EQ(header, wanted);
}

INSTANTIATE_TEST_SUITE_P(Versions, LlmcModel, testing::Values(3, 5),
                         [](const auto& info) { return info.param == 3 ? "f32" : "bf16"; });

TEST(LlmcModelFile, ARoundTripInFloat32GivesTheSameBits) {
  const TemporaryDirectory folder;
  manual_seed(3);
  const nn::Gpt2 saved(tiny_gpt2());
  save_llmc_model(saved, folder / "model.bin");
  EXPECT_TRUE(same_parameters(*load_llmc_model(folder / "model.bin"), saved));
}

TEST(LlmcModelFile, IsToldByItsMagic) {
  const TemporaryDirectory folder;
  put_file(folder / "model.bin", golden(3, 3, 0).file);
  put_file(folder / "short", "xy");
  EXPECT_TRUE(is_llmc_model(folder / "model.bin"));
  EXPECT_FALSE(is_llmc_model(folder / "short"));
  EXPECT_FALSE(is_llmc_model(folder / "gone"));
  EXPECT_FALSE(is_llmc_model(folder.path()));
}

TEST(LlmcModelFile, MalformedFilesAreRefusedByCause) {
  const TemporaryDirectory folder;
  const std::string good = golden(3, 3, 0).file;
  const auto with_word = [&](size_t index, int32_t value) {
    std::string file = good;
    std::memcpy(file.data() + index * sizeof(value), &value, sizeof(value));
    return file;
  };
  const std::string size = std::to_string(good.size());
  const struct {
    std::string file;
    std::string says;
  } cases[] = {
      {"", "expected a header of 1024 bytes, but the file ends at byte 0"},
      {good.substr(0, 1023), "ends at byte 1023"},
      {with_word(0, 20240520), "expected 20240326, got 20240520"},
      {with_word(1, 1), "expected 3 (float32) or 5 (bfloat16), got 1"},
      {with_word(1, 4), "expected 3 (float32) or 5 (bfloat16), got 4"},
      {with_word(1, 6), "expected 3 (float32) or 5 (bfloat16), got 6"},
      {with_word(1, 5), "the header asks for a file of "},
      {with_word(2, 0), "positions at byte 8: expected 1 to 1048576, got 0"},
      {with_word(2, 3), "but it has " + size},
      {with_word(2, (1 << 20) + 1), "positions at byte 8: expected 1 to 1048576, got 1048577"},
      {with_word(3, -1), "vocabulary at byte 12: expected 1 to 16777216, got -1"},
      {with_word(4, 1 << 30), "layers at byte 16: expected 1 to 10000, got 1073741824"},
      {with_word(5, 0), "heads at byte 20: expected 1 to 65536, got 0"},
      {with_word(5, 3), "heads at byte 20: expected a divisor of the width 4, got 3"},
      {with_word(6, 0), "width at byte 24: expected 1 to 1048576, got 0"},
      {with_word(7, 2), "padded vocabulary at byte 28: expected 3 to 16777344, got 2"},
      {good.substr(0, good.size() - 1),
       "asks for a file of " + size + " bytes, but it has " + std::to_string(good.size() - 1)},
      {good + "x",
       "asks for a file of " + size + " bytes, but it has " + std::to_string(good.size() + 1)},
  };
  for (const auto& [file, part] : cases) {
    put_file(folder / "model.bin", file);
    const std::string message =
        message_of<CheckpointError>([&] { load_llmc_model(folder / "model.bin"); });
    EXPECT_TRUE(says(message, part));
    EXPECT_TRUE(says(message, "model.bin: "));
  }
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { load_llmc_model(folder / "gone"); }),
                   "No such file or directory"));
}

TEST(LlmcModelFile, WhatTheFormatCannotSayIsNotWritten) {
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder / "model.bin";
  nn::Gpt2Options options = tiny_gpt2();
  EXPECT_TRUE(
      says(message_of<DTypeError>([&] { save_llmc_model(nn::Gpt2(options), path, DType::kF16); }),
           "[llmc] a model of llm.c holds float32 or bfloat16, got float16."));
  options.epsilon = 1e-6;
  EXPECT_TRUE(says(message_of<ConfigError>([&] { save_llmc_model(nn::Gpt2(options), path); }),
                   "epsilon of 1e-05: this model's is 1e-06"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(says(message_of<CheckpointError>(
                       [&] { save_llmc_model(nn::Gpt2(tiny_gpt2()), folder / "no/model.bin"); }),
                   "no/model.bin"));
}

}  // namespace
}  // namespace lockstep::train
