#include "data/tokenizers/hugging_face_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "data/tokenizers/bpe_training.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/sentencepiece_training.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::json;

std::string song() {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "row, row, row your boat gently down the stream\n";
  return text;
}

TEST(HuggingFaceTokenizer, OfBytesHasTheirValuesAsIds) {
  const Json file = Json::parse(hugging_face_bytes().tokenizer);
  EXPECT_EQ(file["model"]["vocab"].size(), 256U);
  EXPECT_EQ(file["model"]["vocab"]["A"], 65);
  EXPECT_EQ(file["model"]["vocab"]["\u0120"], 32);  // a space, as GPT-2 writes it
  EXPECT_TRUE(file["model"]["merges"].empty());
  EXPECT_EQ(file["pre_tokenizer"]["use_regex"], false);
  EXPECT_FALSE(Json::parse(hugging_face_bytes().config).contains("eos_token"));
}

TEST(HuggingFaceTokenizer, OfBpeHasItsMergesInOrderAndTheEndOfTextAsASpecialToken) {
  const TrainedBpe trained = train_bpe(song(), 280);
  const HuggingFaceTokenizer files = hugging_face_bpe(trained.vocabulary, trained.merges);
  const Json file = Json::parse(files.tokenizer);
  EXPECT_EQ(file["model"]["vocab"], Json::parse(trained.vocabulary));
  EXPECT_EQ(file["model"]["merges"].size(), 280U - 257U);
  const Json& first = file["model"]["merges"][0];
  EXPECT_NE(trained.merges.find("\n" + first[0].get<std::string>() + " " +
                                first[1].get<std::string>() + "\n"),
            std::string::npos);
  EXPECT_EQ(file["added_tokens"][0]["id"], 279);
  EXPECT_EQ(file["pre_tokenizer"]["use_regex"], true);
  EXPECT_EQ(Json::parse(files.config)["eos_token"], "<|endoftext|>");
}

TEST(HuggingFaceTokenizer, OfSentencePieceMergesByScoreWithByteFallback) {
  const std::string model = train_sentencepiece(song(), 320);
  const HuggingFaceTokenizer files = hugging_face_sentencepiece(model);
  const Json file = Json::parse(files.tokenizer);
  EXPECT_EQ(file["model"]["byte_fallback"], true);
  EXPECT_EQ(file["model"]["unk_token"], "<unk>");
  // The piece of the highest score is the first that neighbours are merged into.
  const Json& first = file["model"]["merges"][0];
  const std::string merged = first[0].get<std::string>() + first[1].get<std::string>();
  EXPECT_EQ(file["model"]["vocab"][merged], 259);
  EXPECT_EQ(Json::parse(files.config)["bos_token"], "<s>");
}

TEST(HuggingFaceTokenizer, IsFoundAgainWhereBytesWereSaved) {
  const TemporaryDirectory folder;
  EXPECT_EQ(find_tokenizer(folder.path()), nullptr);
  ByteTokenizer().save(folder.path());
  const auto found = find_tokenizer(folder.path());
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name(), "byte");
  put_file(folder / HuggingFaceTokenizer::kFileName, "{}");
  EXPECT_EQ(find_tokenizer(folder.path()), nullptr);
}

}  // namespace
}  // namespace lockstep::train
