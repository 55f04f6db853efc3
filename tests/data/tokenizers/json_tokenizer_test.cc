#include "data/tokenizers/json_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/error.h"
#include "data/tokenizers/bpe_training.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/hugging_face_tokenizer.h"
#include "data/tokenizers/normal_form.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"
#include "data/tokenizers/sentencepiece_training.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/data/tokenizers/recorded_tokenizers.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;

const Json& recorded() {
  static const Json kRecorded = Json::parse(
      file_content(LOCKSTEP_SOURCE_DIR "/tests/data/tokenizers/recorded_tokenizers.json"));
  return kRecorded;
}

/// The tokenizer.json that was recorded under `name`.
Json recorded_file(const std::string& name) {
  for (const Json& each : recorded()) {
    if (each.at("name") == name) return each.at("tokenizer");
  }
  throw std::runtime_error("no tokenizer " + name);
}

JsonTokenizer tokenizer_of(const Json& file, const Json& config = {}) {
  return {file.dump(), config.is_null() ? "" : config.dump(), "some.json"};
}

/// What is said of a tokenizer that cannot be read.
std::string complaint_about(const Json& file) {
  const std::string message = message_of<DataError>([&] { (void)tokenizer_of(file); });
  EXPECT_EQ(message.substr(0, 23), "[tokenizer] some.json: ");
  return message;
}

TEST(JsonTokenizer, GivesTheIdsThatWereRecordedOfThePackage) {
  EXPECT_EQ(compare_recorded(recorded()), 420U);
}

TEST(JsonTokenizer, DecodesToTheBytesOfTheText) {
  int compared = 0;
  for (const Json& each : recorded()) {
    const JsonTokenizer tokenizer = tokenizer_of(each.at("tokenizer"));
    for (const Json& text : each.at("texts")) {
      auto spelled = text.at(0).get<std::string>();
      // A mark is taken for a space, and the added token "  x" takes the white space behind it.
      if (spelled.find(kSpaceMark) != spelled.npos || spelled.find("  x") != spelled.npos) continue;
      // Behind an added token a text gets another mark, and none if it begins with a space.
      const bool is_whole = spelled.find('<') == spelled.npos && spelled[0] != ' ';
      if (tokenizer.adds_space() && !is_whole) continue;
      ++compared;
      const std::string decoded = decode(tokenizer, encode(tokenizer, spelled));
      if (each.at("name") == "qwen2_nfc") {
        EXPECT_EQ(composed(decoded).value_or(decoded), composed(spelled).value_or(spelled));
      } else {
        EXPECT_EQ(decoded, spelled) << each.at("name");
      }
    }
  }
  EXPECT_GT(compared, 150);
}

TEST(JsonTokenizer, ReadsWhatOurOwnTokenizersWriteWithTheSameIds) {
  std::string song;
  for (int i = 0; i < 30; ++i) song += "row, row, row your boat gently down the stream\n";
  const TrainedBpe trained = train_bpe(song, 280);
  const std::string model = train_sentencepiece(song, 320);
  const std::vector<std::pair<std::shared_ptr<Tokenizer>, HuggingFaceTokenizer>> pairs = {
      {std::make_shared<ByteTokenizer>(), hugging_face_bytes()},
      {std::make_shared<BpeTokenizer>(trained.vocabulary, trained.merges, "trained"),
       hugging_face_bpe(trained.vocabulary, trained.merges)},
      {std::make_shared<SentencePieceTokenizer>(model, "trained"),
       hugging_face_sentencepiece(model)}};
  for (const auto& [ours, files] : pairs) {
    const JsonTokenizer read(files.tokenizer, files.config, "ours");
    EXPECT_EQ(read.vocabulary(), ours->vocabulary());
    EXPECT_EQ(read.end_of_text(), ours->end_of_text());
    for (const char* text : {"row your boat", "  streams of  boats\n\n", "caf\u00e9 \xff", ""}) {
      EXPECT_EQ(encode(read, text), encode(*ours, text)) << ours->name() << ": " << text;
    }
  }
}

TEST(JsonTokenizer, EndsOfTextComeFromTheConfigOrAreKnown) {
  const Json file = recorded_file("llama3");
  EXPECT_EQ(tokenizer_of(file).end_of_text(), 332U);  // <|end_of_text|>
  const JsonTokenizer named =
      tokenizer_of(file, {{"eos_token", "<|pad|>"}, {"bos_token", {{"content", "<mask>"}}}});
  EXPECT_EQ(named.end_of_text(), 333U);
  EXPECT_EQ(named.begin_of_text(), 334U);
  EXPECT_EQ(tokenizer_of(file, {{"eos_token", "gone"}}).end_of_text(), std::nullopt);
  EXPECT_NE(named.identity(), tokenizer_of(file).identity());
}

TEST(JsonTokenizer, IsFoundInItsFolderAndSavedAsItWas) {
  const TemporaryDirectory folder, other;
  const std::string text = recorded_file("llama3").dump(1);
  put_file(folder / "tokenizer.json", text);
  put_file(folder / "tokenizer_config.json", "{\"eos_token\": \"<|pad|>\"}");
  const auto found = find_tokenizer(folder.path());
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name(), "hugging_face");
  EXPECT_THAT(found->save(other.path()), ElementsAre("tokenizer.json", "tokenizer_config.json"));
  EXPECT_EQ(file_content(other / "tokenizer.json"), text);
  EXPECT_EQ(load_tokenizer(other.path())->identity(), found->identity());
  // Of files in two formats that differ, such as those of Qwen 2, this one says more.
  put_file(folder / "vocab.json", the_bpe().vocabulary);
  put_file(folder / "merges.txt", the_bpe().merges);
  EXPECT_EQ(load_tokenizer(folder.path())->name(), "hugging_face");
  const BpeTokenizer bpe(folder / "vocab.json", folder / "merges.txt");
  bpe.save(folder.path());
  EXPECT_EQ(load_tokenizer(folder.path())->name(), "bpe");
}

TEST(JsonTokenizer, WhatIsNotSupportedIsNamed) {
  Json file = recorded_file("gpt2");
  const auto with = [&](const char* pointer, const Json& value) {
    Json changed = file;
    changed[Json::json_pointer(pointer)] = value;
    return complaint_about(changed);
  };
  for (const char* type : {"WordPiece", "Unigram", "WordLevel"}) {
    EXPECT_TRUE(says(with("/model/type", type),
                     fmt::format("a model of the type \"{}\" is not supported", type)));
  }
  EXPECT_TRUE(
      says(with("/normalizer", {{"type", "NFD"}}), "the normalizer {\"type\":\"NFD\"} is "));
  EXPECT_TRUE(
      says(with("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}}),
           "the normalizer {\"type\":\"NFKC\"} is not supported"));
  EXPECT_TRUE(says(with("/pre_tokenizer/add_prefix_space", true), "the pre_tokenizer {\"add_pref"));
  EXPECT_TRUE(says(with("/pre_tokenizer", {{"type", "Whitespace"}}), "{\"type\":\"Whitespace\"}"));
  EXPECT_TRUE(says(with("/pre_tokenizer", nullptr), "a pre_tokenizer null is not supported"));
  EXPECT_TRUE(says(with("/model/dropout", 0.1), "dropout 0.1 is not supported"));
  EXPECT_TRUE(
      says(with("/model/end_of_word_suffix", "</w>"), "end_of_word_suffix \"</w>\" is not"));
  EXPECT_TRUE(
      says(with("/added_tokens/0/single_word", true), "single_word of \"<|end_of_text|>\""));
  file = recorded_file("llama3");
  EXPECT_TRUE(says(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+"), "\\w+"));
  EXPECT_TRUE(
      says(with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), "the pre_tokenizer"));
  EXPECT_TRUE(says(with("/pre_tokenizer/pretokenizers/1/use_regex", true), "a second pre_tok"));
  file = recorded_file("metaspace_first");
  EXPECT_TRUE(says(with("/pre_tokenizer/split", true), "the pre_tokenizer"));
  EXPECT_TRUE(says(with("/pre_tokenizer/replacement", "_"), "the pre_tokenizer"));
}

TEST(JsonTokenizer, DamageIsNamed) {
  EXPECT_TRUE(says(message_of<DataError>([] { JsonTokenizer("{", "", "some.json"); }),
                   "some.json: [json] not valid JSON from byte 2 on"));
  EXPECT_TRUE(says(complaint_about(Json::array()), "expected an object with the members"));
  EXPECT_TRUE(says(complaint_about(Json::object()), "it has no model"));
  const Json file = recorded_file("gpt2");
  const auto with = [&](const char* pointer, const Json& value) {
    Json changed = file;
    changed[Json::json_pointer(pointer)] = value;
    return complaint_about(changed);
  };
  EXPECT_TRUE(says(with("/model/vocab", Json::object()), "the model has no vocabulary"));
  EXPECT_TRUE(says(with("/model/vocab/A", -1), "the id of \"A\" is -1: expected a whole number"));
  EXPECT_TRUE(says(with("/model/vocab/A", 1 << 30), "the id of \"A\" is 1073741824: expected a"));
  EXPECT_TRUE(says(with("/model/vocab/A", 33), "has the id 33 of another token"));
  EXPECT_TRUE(says(with("/model/merges/3", "a"), "merge 3 is no pair of tokens"));
  EXPECT_TRUE(says(with("/model/merges/3", {"a", "qqq"}), "merge 3: \"aqqq\" is not in the voc"));
  EXPECT_TRUE(says(with("/added_tokens/0/content", 3), "an added token has no content"));
  Json changed = file;
  changed["model"]["vocab"].erase("A");
  EXPECT_TRUE(says(complaint_about(changed), "no token stands for the byte 0x41"));
}

TEST(JsonTokenizer, OldFormsOfMergesAndModelsAreRead) {
  Json file = recorded_file("gpt2");
  const JsonTokenizer now = tokenizer_of(file);
  for (Json& merge : file["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  file["model"].erase("type");
  file["pre_tokenizer"].erase("use_regex");
  const JsonTokenizer old = tokenizer_of(file);
  const std::string text = "the people row their boats gently down the stream";
  EXPECT_EQ(encode(old, text), encode(now, text));
  EXPECT_EQ(old.merges(), now.merges());
}

RC_GTEST_PROP(JsonTokenizer, AnyBytesComeBack, (const std::string& bytes)) {
  for (const char* name : {"gpt2", "llama3", "qwen2"}) {
    const JsonTokenizer tokenizer = tokenizer_of(recorded_file(name));
    RC_ASSERT(decode(tokenizer, encode(tokenizer, bytes)) == bytes);
    RC_ASSERT(decode(tokenizer, encode_special(tokenizer, bytes)) == bytes);
  }
}

}  // namespace
}  // namespace lockstep::train
