#include "data/tokenizers/bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

#include "core/base/error.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<uint32_t>;

class BpeTokenizerTest : public testing::Test {
 protected:
  TemporaryDirectory folder_;
};

TEST_F(BpeTokenizerTest, MergesByRankWithinPieces) {
  const BpeTokenizer tokenizer = make_bpe(the_bpe(), folder_);
  EXPECT_EQ(tokenizer.vocabulary(), 263);
  EXPECT_EQ(tokenizer.end_of_text(), 262u);
  // "the" merges by (t h)(th e). In " the", (t h) ranks before (space t), so the space stays apart.
  EXPECT_THAT(encode(tokenizer, "the the"), ElementsAre(258, ' ', 258));
  EXPECT_THAT(encode(tokenizer, "aaaaa"), ElementsAre(261, 261, 'a'));
  EXPECT_THAT(encode(tokenizer, " to"), ElementsAre(257, 'o'));
  // "t" and "1" are different pieces, across which nothing merges.
  EXPECT_THAT(encode(tokenizer, "t1h"), ElementsAre('t', '1', 'h'));
}

TEST_F(BpeTokenizerTest, LowerRanksComeFirstWhereverTheyStand) {
  const BpeTokenizer tokenizer = make_bpe(tiny_bpe({"b c", "a b", "c d"}), folder_);
  EXPECT_THAT(encode(tokenizer, "abcd"), ElementsAre('a', 256, 'd'));
  EXPECT_THAT(encode(tokenizer, "abd"), ElementsAre(257, 'd'));
}

TEST_F(BpeTokenizerTest, EndOfTextIsATokenOnlyWhereAskedFor) {
  const BpeTokenizer tokenizer = make_bpe(the_bpe(), folder_);
  EXPECT_THAT(encode_special(tokenizer, "<|endoftext|>the<|endoftext|>"),
              ElementsAre(262, 258, 262));
  const Ids plain = encode(tokenizer, "<|endoftext|>");
  EXPECT_EQ(plain.size(), 13u);
  EXPECT_EQ(decode(tokenizer, plain), "<|endoftext|>");
  EXPECT_EQ(decode(tokenizer, Ids{262}), "<|endoftext|>");
}

TEST_F(BpeTokenizerTest, SavedFilesGiveTheSameTokenizer) {
  const BpeTokenizer tokenizer = make_bpe(the_bpe(), folder_);
  const TemporaryDirectory other;
  EXPECT_THAT(
      tokenizer.save(other.path()),
      testing::ElementsAre("vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"));
  const auto loaded = load_tokenizer(other.path());
  EXPECT_EQ(loaded->name(), "bpe");
  EXPECT_EQ(loaded->identity(), tokenizer.identity());
  EXPECT_EQ(encode(*loaded, "the cat"), encode(tokenizer, "the cat"));
  EXPECT_NE(make_bpe(tiny_bpe({"t h"}), folder_).identity(), tokenizer.identity());
}

TEST_F(BpeTokenizerTest, OneFileWithoutTheOtherIsRefused) {
  EXPECT_EQ(load_tokenizer(folder_.path())->name(), "byte");
  put_file(folder_ / "vocab.bpe", "");
  EXPECT_TRUE(says(message_of<DataError>([&] { load_tokenizer(folder_.path()); }),
                   "expected encoder.json and vocab.bpe together, found only vocab.bpe"));
}

TEST_F(BpeTokenizerTest, IdsOutsideTheVocabularyAreRefused) {
  const BpeTokenizer tokenizer = make_bpe(the_bpe(), folder_);
  EXPECT_TRUE(says(message_of<DataError>([&] { decode(tokenizer, Ids{263}); }),
                   "no token has the id 263: expected one in [0, 263)"));
}

TEST_F(BpeTokenizerTest, LongRunsTakeNoQuadraticTime) {
  const BpeTokenizer tokenizer = make_bpe(the_bpe(), folder_);
  EXPECT_EQ(encode(tokenizer, std::string(1 << 20, 'a')).size(), size_t{1} << 19);
}

RC_GTEST_PROP(BpeTokenizer, AnyBytesRoundTrip, ()) {
  static const TemporaryDirectory folder;
  static const BpeTokenizer tokenizer = make_bpe(the_bpe(), folder);
  std::string text = *rc::gen::arbitrary<std::string>();
  for (const std::string& word : *rc::gen::container<std::vector<std::string>>(
           rc::gen::elementOf(std::vector<std::string>{" the", "the", "aaa", "\xff", "\xc3"}))) {
    text += word;
  }
  RC_ASSERT(decode(tokenizer, encode(tokenizer, text)) == text);
}

/// Message of the error that parse_bpe throws for these files.
std::string problem(const std::string& vocabulary, const std::string& merges) {
  return message_of<DataError>([&] { parse_bpe(vocabulary, "vocab.json", merges, "merges.txt"); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(BpeVocabulary, WrongFilesAreRefusedWithThePlace) {
  const auto [vocabulary, merges] = the_bpe();
  EXPECT_EQ(problem(vocabulary, merges), "(nothing thrown)");
  EXPECT_TRUE(says(problem("", merges), "vocab.json: it is no JSON from byte"));
  EXPECT_TRUE(says(problem("{}", merges), "vocab.json: the vocabulary is empty"));
  EXPECT_TRUE(says(problem("[1]", merges), "expected an object from token to id"));
  EXPECT_TRUE(says(problem(std::string(1'000'000, '['), merges), "expected an object"));
  EXPECT_TRUE(says(problem("7", merges), "expected an object from token to id"));
  EXPECT_TRUE(says(problem(vocabulary.substr(0, 100), merges), "it is no JSON from byte 101 on"));
  EXPECT_TRUE(says(problem(vocabulary + "x", merges), "it is no JSON from byte"));
  EXPECT_TRUE(says(problem(replaced(vocabulary, ": 65", ": -65"), merges), "no whole number"));
  EXPECT_TRUE(says(problem(replaced(vocabulary, ": 65", ": {}"), merges), "an object as its id"));
  EXPECT_TRUE(says(problem(replaced(vocabulary, ": 65", ": 66"), merges), "each once"));
  EXPECT_TRUE(
      says(problem(replaced(vocabulary, ": 65", ": 999"), merges), "expected the ids 0 to"));
  EXPECT_TRUE(says(problem(replaced(vocabulary, ": 65", ": 99999999999"), merges), "has the id"));
  EXPECT_TRUE(
      says(problem(replaced(vocabulary, "\"B\"", "\"A\""), merges), "\"A\" stands there twice"));
  EXPECT_TRUE(says(problem(replaced(vocabulary, "\"A\"", "\"AA\""), merges),
                   "no token stands for the byte 0x41"));
  EXPECT_TRUE(says(problem(vocabulary, "t h\nq z\n"), "merges.txt:2: \"qz\" is not in"));
  EXPECT_TRUE(says(problem(vocabulary, "th\n"), "merges.txt:1: expected two tokens"));
  EXPECT_TRUE(says(problem(vocabulary, "t h e\n"), "merges.txt:1: expected two tokens"));
  EXPECT_TRUE(says(problem(vocabulary, "t h\nt h\n"), "merges.txt:2: this merge stands there"));
}

RC_GTEST_PROP(BpeVocabulary, DamagedFilesGiveDataErrorOrAVocabularyThatWorks, ()) {
  BpeFiles files = the_bpe();
  std::string& victim = *rc::gen::arbitrary<bool>() ? files.vocabulary : files.merges;
  const auto at = *rc::gen::inRange<size_t>(0, victim.size());
  if (*rc::gen::arbitrary<bool>()) {
    victim.resize(at);
  } else {
    victim[at] = static_cast<char>(victim[at] ^ 1 << *rc::gen::inRange(0, 8));
  }
  try {
    const BpeVocabulary parsed = parse_bpe(files.vocabulary, "v", files.merges, "m");
    for (const auto& [key, merge] : parsed.merges) RC_ASSERT(merge.id < parsed.tokens.size());
    for (const uint32_t id : parsed.byte_tokens) RC_ASSERT(id < parsed.tokens.size());
  } catch (const DataError& error) {
    RC_ASSERT(std::string(error.what()).starts_with("[tokenizer] "));
  }
}

/// Needs GPT-2's own files in the folder named by TEST_GPT2_FILES.
TEST(Gpt2Files, GiveTiktokensIds) {
  const char* folder = std::getenv("TEST_GPT2_FILES");
  if (folder == nullptr) GTEST_SKIP() << "TEST_GPT2_FILES names no folder";
  const auto tokenizer = load_tokenizer(folder);
  ASSERT_EQ(tokenizer->name(), "bpe");
  EXPECT_EQ(tokenizer->vocabulary(), 50257);
  EXPECT_EQ(tokenizer->end_of_text(), 50256u);
  const auto ids = [&](std::string_view text) { return encode(*tokenizer, text); };
  EXPECT_EQ(ids("Hello, world!"), (Ids{15496, 11, 995, 0}));
  EXPECT_EQ(ids("  two  spaces\n\n x"), (Ids{220, 734, 220, 9029, 628, 2124}));
  EXPECT_EQ(ids("I'll we've It'S"), (Ids{40, 1183, 356, 1053, 632, 6, 50}));
  EXPECT_EQ(ids("naïve café 日本語 🙂"),
            (Ids{2616, 38776, 40304, 10545, 245, 98, 17312, 105, 45739, 252, 32485}));
  EXPECT_EQ(ids("1234567 a1b2"), (Ids{10163, 2231, 3134, 257, 16, 65, 17}));
}

}  // namespace
}  // namespace lockstep::train
