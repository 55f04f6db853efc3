#include "data/tokenized_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/error.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"

namespace lockstep::train {
namespace {

class TokenizedTextTest : public testing::Test {
 protected:
  Documents documents(const std::vector<std::string>& texts) const {
    std::filesystem::create_directories(folder_ / "texts");
    for (size_t i = 0; i < texts.size(); ++i) {
      put_file(folder_ / ("texts/" + std::to_string(i)), texts[i]);
    }
    return Documents((folder_ / "texts").string());
  }
  static std::string text_of(const TokenArray& tokens, const Tokenizer& tokenizer) {
    std::string text;
    for (int64_t i = 0; i < tokens.size(); ++i) tokenizer.decode(tokens[i], text);
    return text;
  }
  TemporaryDirectory folder_;
  TemporaryDirectory bpe_folder_;
  BpeTokenizer bpe_ = make_bpe(the_bpe(), bpe_folder_);
  TokenCache cache_{folder_ / "cache"};
  TokenCache no_cache_{{}};
};

TEST_F(TokenizedTextTest, EndOfTextStandsBetweenDocuments) {
  const TokenizedText text = tokenize(documents({"the", "", "aa"}), 0, bpe_, no_cache_);
  EXPECT_EQ(text_of(text.tokens, bpe_), "the<|endoftext|>aa");
  EXPECT_EQ(text.tokens.size(), 3);
  EXPECT_EQ(text.training_tokens, 3);
  EXPECT_EQ(text.held_out().size(), 0);
  const ByteTokenizer bytes;
  EXPECT_EQ(text_of(tokenize(documents({"the", "", "aa"}), 0, bytes, no_cache_).tokens, bytes),
            "theaa");
}

TEST_F(TokenizedTextTest, TheEndIsHeldOutAndEncodedApart) {
  // The cut is inside "the", which would otherwise be one token.
  const TokenizedText text = tokenize(documents({"aa the"}), 2, bpe_, no_cache_);
  EXPECT_EQ(text_of(text.training(), bpe_), "aa t");
  // The last training token, followed by the held-out text.
  EXPECT_EQ(text_of(text.held_out(), bpe_), " the");
  EXPECT_EQ(text.held_out().size(), 3);
}

TEST_F(TokenizedTextTest, CharactersAreNotCut) {
  const TokenizedText text = tokenize(documents({"aé"}), 1, bpe_, no_cache_);
  EXPECT_EQ(text_of(text.training(), bpe_), "aé");
  EXPECT_EQ(text.held_out().size(), 0);
}

TEST_F(TokenizedTextTest, CachedTokensOutsideTheVocabularyAreMissing) {
  struct {
    uint64_t width = 2;
    int64_t training_tokens = 1;
    uint16_t tokens[4] = {1, 2, 299, 3};
  } const entry;
  const auto bytes = std::as_bytes(std::span(&entry, 1));
  EXPECT_TRUE(parse_cached_tokens(bytes, nullptr, 300).has_value());
  EXPECT_FALSE(parse_cached_tokens(bytes, nullptr, 299).has_value());
}

TEST_F(TokenizedTextTest, HoldingOutWholeDocumentsKeepsTheBoundary) {
  const TokenizedText text = tokenize(documents({"the", "aa"}), 2, bpe_, no_cache_);
  EXPECT_EQ(text_of(text.training(), bpe_), "the");
  EXPECT_EQ(text_of(text.held_out(), bpe_), "the<|endoftext|>aa");
}

TEST_F(TokenizedTextTest, TheCacheGivesTheSameTokensAndSurvivesDamage) {
  const Documents text = documents({"the cat", "aa the"});
  const TokenizedText fresh = tokenize(text, 2, bpe_, cache_);
  const auto entry = std::filesystem::directory_iterator(folder_ / "cache")->path();
  const auto same = [&](const TokenizedText& other) {
    return std::ranges::equal(fresh.tokens.bytes(), other.tokens.bytes()) &&
           other.training_tokens == fresh.training_tokens;
  };
  EXPECT_TRUE(same(tokenize(text, 2, bpe_, cache_)));
  std::string bytes = file_content(entry);
  bytes.back() ^= 1;
  put_file(entry, bytes);
  EXPECT_TRUE(same(tokenize(text, 2, bpe_, cache_)));
  bytes.back() ^= 1;
  EXPECT_EQ(file_content(entry), bytes);  // the entry was written again
}

TEST_F(TokenizedTextTest, EveryChangeThatMattersHasAnEntryOfItsOwn) {
  const auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(folder_ / "cache"), {});
  };
  tokenize(documents({"the", "aa"}), 1, bpe_, cache_);
  EXPECT_EQ(entries(), 1);
  tokenize(documents({"the", "aa"}), 2, bpe_, cache_);
  EXPECT_EQ(entries(), 2);
  tokenize(documents({"thea", "a"}), 1, bpe_, cache_);
  EXPECT_EQ(entries(), 3);
  const TemporaryDirectory other;
  tokenize(documents({"the", "aa"}), 1, make_bpe(tiny_bpe({"a a"}), other), cache_);
  EXPECT_EQ(entries(), 4);
  tokenize(documents({"the", "aa"}), 1, bpe_, cache_);
  EXPECT_EQ(entries(), 4);
}

TEST_F(TokenizedTextTest, WhatIsNoTextIsRefusedWithThePlace) {
  const Documents binary = documents({"text", std::string("te\0t", 4)});
  EXPECT_TRUE(says(message_of<DataError>([&] { tokenize(binary, 0, bpe_, no_cache_); }),
                   "texts/1: expected text, got a zero byte at byte 2"));
  EXPECT_NO_THROW(tokenize(binary, 0, ByteTokenizer(), no_cache_));
  EXPECT_TRUE(says(message_of<DataError>([&] { documents({"", ""}); }), "the text is empty"));
}

TEST_F(TokenizedTextTest, BytesAreReadFromTheTextItself) {
  const Documents text = documents({"aa", "aé the"});
  const TokenizedText tokens = tokenize(text, 5, ByteTokenizer(), no_cache_);
  EXPECT_EQ(tokens.tokens.width(), 1);
  EXPECT_EQ(static_cast<const void*>(tokens.tokens.bytes().data()), text.whole()->data());
  EXPECT_EQ(text_of(tokens.tokens, ByteTokenizer()), "aaaé the");
  EXPECT_EQ(tokens.training_tokens, 5);  // "é" is not cut
}

TEST_F(TokenizedTextTest, ManyDocumentsMoveTheirTokensFewTimes) {
  std::vector<uint32_t> ids;
  int moves = 0;
  for (int document = 0; document < 1000; ++document) {
    const uint32_t* const place = ids.data();
    ByteTokenizer().encode("a document", ids);
    if (ids.data() != place) ++moves;
  }
  EXPECT_EQ(ids.size(), 10000u);
  EXPECT_LT(moves, 30);  // an exact reserve moves them for every document
}

TEST_F(TokenizedTextTest, TooMuchHeldOutIsRefused) {
  const Documents text = documents({"12345"});
  for (const int64_t bytes : {5, 6, -1}) {
    EXPECT_TRUE(says(message_of<DataError>([&] { tokenize(text, bytes, bpe_, no_cache_); }),
                     "cannot hold out"));
  }
}

RC_GTEST_FIXTURE_PROP(TokenizedTextTest, TrainingAndHeldOutTogetherAreTheText, ()) {
  std::string text = *rc::gen::nonEmpty(rc::gen::string<std::string>());
  std::erase(text, '\0');
  RC_PRE(!text.empty());
  const auto held_out = *rc::gen::inRange<int64_t>(0, std::ssize(text));
  const TokenizedText tokens = tokenize(documents({text}), held_out, bpe_, no_cache_);
  RC_ASSERT(text_of(tokens.tokens, bpe_) == text);
  const auto training = text_of(tokens.training(), bpe_).size();
  RC_ASSERT(training >= text.size() - static_cast<size_t>(held_out));
  RC_ASSERT(training <= text.size());
}

}  // namespace
}  // namespace lockstep::train
