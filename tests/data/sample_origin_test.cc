#include "data/sample_origin.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "data/text_data.h"
#include "data/token_data.h"
#include "data/tokenized_text.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/bpe_training.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/json_tokenizer.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/data/stub_tokenizer.h"

namespace lockstep::train {
namespace {

/// The bytes of a file from an origin on.
std::string text_at(const SampleOrigin& origin, size_t size) {
  return file_content(origin.file).substr(static_cast<size_t>(origin.first), size);
}

TEST(SampleOrigin, OfAByteTextIsTheByteWhereTheSequenceBegins) {
  const TemporaryDirectory folder;
  std::string text;
  for (int i = 0; i < 500; ++i) text += std::to_string(i * i) + " ";
  put_file(folder / "text.txt", text);
  const ByteText source(folder / "text.txt", 100, 3);
  const std::vector<SampleOrigin> origins = source.origins(7, 4, 16);
  ASSERT_EQ(origins.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    std::vector<int64_t> inputs(16), targets(16);
    source.sequence(7, i, inputs, targets);
    EXPECT_STREQ(origins[static_cast<size_t>(i)].unit, "byte");
    EXPECT_EQ(text_at(origins[static_cast<size_t>(i)], 16),
              std::string(inputs.begin(), inputs.end()));
  }
}

TEST(SampleOrigin, OfTokenFilesIsTheFileAndItsToken) {
  std::vector<uint32_t> ids(100);
  for (uint32_t i = 0; i < 100; ++i) ids[i] = i;
  const TokenData source({{"one", TokenArray::copy_of(ids)}, {"two", TokenArray::copy_of(ids)}}, {},
                         {.vocabulary = 100, .seed = 5, .sequences_per_step = 6});
  const std::vector<SampleOrigin> origins = source.origins(2, 6, 8);
  for (int64_t i = 0; i < 6; ++i) {
    std::vector<int64_t> inputs(8), targets(8);
    source.sequence(2, i, inputs, targets);
    EXPECT_STREQ(origins[static_cast<size_t>(i)].unit, "token");
    EXPECT_EQ(origins[static_cast<size_t>(i)].first, inputs[0]);
  }
}

TEST(SampleOrigin, OfTokenizedDocumentsIsTheDocumentAndItsByte) {
  const TemporaryDirectory folder;
  std::string all;
  for (int file = 0; file < 5; ++file) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "file " + std::to_string(file * 7 + i % 13) + " ends. ";
    put_file(folder / ("text" + std::to_string(file) + ".txt"), text);
    all += text;
  }
  const TrainedBpe files = train_bpe(all, 300);
  const auto tokenizer = std::make_shared<BpeTokenizer>(files.vocabulary, files.merges, "trained");
  const Documents documents((folder / "*.txt").string());
  const TokenizedText text = tokenize(documents, 100, *tokenizer, TokenCache({}));
  const TokenData source(
      {{"text", text.training(), std::make_shared<const Documents>(documents)}}, {},
      {.vocabulary = 300, .seed = 5, .sequences_per_step = 8, .tokenizer = tokenizer});
  const std::vector<SampleOrigin> origins = source.origins(1, 8, 12);
  for (int64_t i = 0; i < 8; ++i) {
    std::vector<int64_t> inputs(12), targets(12);
    source.sequence(1, i, inputs, targets);
    std::string begin = decode(*tokenizer, std::vector<uint32_t>(inputs.begin(), inputs.end()));
    begin.resize(4);  // a sample may go on in the next document
    EXPECT_EQ(text_at(origins[static_cast<size_t>(i)], 4), begin);
  }
}

TEST(SampleOrigin, OfADocumentBehindOneThatTheTokenizerHasShortenedIsItsBegin) {
  const nlohmann::json recorded = nlohmann::json::parse(
      file_content(LOCKSTEP_SOURCE_DIR "/tests/data/tokenizers/recorded_tokenizers.json"));
  const JsonTokenizer tokenizer(recorded.back().at("tokenizer").dump(), "", "some.json");
  const TemporaryDirectory folder;
  put_file(folder / "a.txt", "e\u0301e\u0301e\u0301");
  put_file(folder / "b.txt", "second");
  put_file(folder / "c.txt", "third");
  const Documents documents((folder / "*.txt").string());
  const TokenArray tokens = tokenize(documents, 0, tokenizer, TokenCache({})).tokens;
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == tokenizer.end_of_text()) begins.push_back(i + 1);
  }
  ASSERT_EQ(begins.size(), 2U);
  const std::vector<SampleOrigin> origins = origins_in(documents, tokens, tokenizer, begins);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(origins[i].file, documents.path(i + 1).string());
    EXPECT_EQ(origins[i].first, 0);
  }
}

TEST(SampleOrigin, ASpaceThatTheTokenizerAddsIsNoByteOfTheText) {
  const TemporaryDirectory folder;
  put_file(folder / "a.txt", "hello");
  put_file(folder / "b.txt", " world");
  const Documents documents({folder / "a.txt", folder / "b.txt"});
  const StubTokenizer tokenizer(false, /*adds_space=*/true);
  const TokenizedText text = tokenize(documents, 0, tokenizer, TokenCache({}));
  ASSERT_EQ(text.tokens.size(), 6 + 1 + 7);
  const std::vector<int64_t> offsets = {1, 3, 7, 8, 9};
  std::vector<int64_t> bytes;
  for (const SampleOrigin& origin : origins_in(documents, text.tokens, tokenizer, offsets)) {
    bytes.push_back(origin.first);
  }
  EXPECT_EQ(bytes, (std::vector<int64_t>{0, 2, 0, 0, 1}));
}

TEST(SampleOrigin, TellsHowManyOtherTextsARowHas) {
  EXPECT_EQ(file_and_line({.file = "a.txt"}), "a.txt");
  EXPECT_EQ(file_and_line({.file = "a.jsonl", .line = 17, .others = 1}), "a.jsonl:17 and 1 other");
  EXPECT_EQ(file_and_line({.file = "a.jsonl", .line = 17, .others = 2}), "a.jsonl:17 and 2 others");
}

TEST(SampleOrigin, OfRandomTokensIsNone) {
  EXPECT_TRUE(RandomTokens(10, 1).origins(0, 4, 8).empty());
}

}  // namespace
}  // namespace lockstep::train
