#include "data/tokenizers/bpe_training.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "data/tokenizers/bpe_tokenizer.h"

namespace lockstep::train {
namespace {

/// A text in which some words are frequent.
std::string cats() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "the cat sat on the mat\nthe rat ran; caf\xc3\xa9 " + std::to_string(i % 7) + "\n";
  }
  return text;
}

BpeTokenizer trained(const std::string& text, int64_t vocabulary) {
  const TrainedBpe files = train_bpe(text, vocabulary);
  return BpeTokenizer(files.vocabulary, files.merges, "trained");
}

TEST(BpeTraining, FrequentWordsBecomeTokens) {
  const BpeTokenizer tokenizer = trained(cats(), 300);
  EXPECT_EQ(encode(tokenizer, " the").size(), 1U);
  EXPECT_LT(encode(tokenizer, cats()).size(), cats().size() / 2);
  EXPECT_EQ(tokenizer.end_of_text(), tokenizer.vocabulary() - 1);
}

TEST(BpeTraining, EveryTextIsRestored) {
  const BpeTokenizer tokenizer = trained(cats(), 290);
  for (const std::string& text : {cats(), std::string("\xff\x00 other words", 14)}) {
    EXPECT_EQ(decode(tokenizer, encode(tokenizer, text)), text);
  }
}

TEST(BpeTraining, DependsOnlyOnTextAndSize) {
  const TrainedBpe once = train_bpe(cats(), 300);
  const TrainedBpe again = train_bpe(cats(), 300);
  EXPECT_EQ(once.vocabulary, again.vocabulary);
  EXPECT_EQ(once.merges, again.merges);
  // A larger vocabulary begins with the merges of a smaller one.
  EXPECT_TRUE(once.merges.starts_with(train_bpe(cats(), 280).merges));
}

TEST(BpeTraining, AShortTextGivesFewerTokens) {
  EXPECT_EQ(trained("abcdefg", 1000).vocabulary(), 257);
  EXPECT_EQ(trained(cats(), 280).vocabulary(), 280);
}

TEST(BpeTraining, AVocabularyWithoutRoomForBytesIsRefused) {
  EXPECT_THROW(train_bpe("abc", 256), DataError);
}

}  // namespace
}  // namespace lockstep::train
