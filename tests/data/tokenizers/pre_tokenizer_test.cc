#include "data/tokenizers/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "core/base/utf8.h"
#include "data/tokenizers/unicode_classes.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = gpt2_piece_end(text, begin);
    result.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

TEST(PreTokenizer, WordsTakeTheSpaceBeforeThem) {
  EXPECT_THAT(pieces("Hello, world 42!"), ElementsAre("Hello", ",", " world", " 42", "!"));
  EXPECT_THAT(pieces("a1b2 ... x"), ElementsAre("a", "1", "b", "2", " ...", " x"));
  EXPECT_THAT(pieces(""), IsEmpty());
}

TEST(PreTokenizer, ContractionsStandAlone) {
  EXPECT_THAT(pieces("I'll we've it's"), ElementsAre("I", "'ll", " we", "'ve", " it", "'s"));
  EXPECT_THAT(pieces("'sad 'tis 'S"), ElementsAre("'s", "ad", " '", "tis", " '", "S"));
  EXPECT_THAT(pieces("''re''"), ElementsAre("''", "re", "''"));
}

TEST(PreTokenizer, RunsOfSpaceLeaveTheLastOne) {
  EXPECT_THAT(pieces("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(pieces("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(pieces("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(pieces("a \n"), ElementsAre("a", " \n"));
  EXPECT_THAT(pieces("a\n b"), ElementsAre("a", "\n", " b"));
  EXPECT_THAT(pieces("  "), ElementsAre("  "));
  EXPECT_THAT(pieces("\u3000\u3000x"), ElementsAre("\u3000", "\u3000", "x"));
}

TEST(PreTokenizer, OtherScriptsAreLettersAndNumbersToo) {
  EXPECT_THAT(pieces("naïve 日本語 ١٢٣ ½🙂"),
              ElementsAre("naïve", " 日本語", " ١٢٣", " ½", "🙂"));
}

TEST(PreTokenizer, BytesThatAreNoTextAreNeitherLettersNorSpace) {
  EXPECT_THAT(pieces("a\xff\xfe b"), ElementsAre("a", "\xff\xfe", " b"));
  EXPECT_THAT(pieces("\xc3"), ElementsAre("\xc3"));
}

/// Reference: tries the regular expression's alternatives in order at one position.
class Oracle {
 public:
  explicit Oracle(std::string_view text) : text_(text) {}

  size_t end(size_t at) const {
    for (const char* ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text_.substr(at).starts_with(ending)) return at + std::string_view(ending).size();
    }
    const size_t after_space = text_[at] == ' ' ? at + 1 : at;
    for (const CharClass kind : {CharClass::kLetter, CharClass::kNumber, CharClass::kOther}) {
      if (const size_t stop = run(after_space, kind); stop > after_space) return stop;
    }
    const size_t stop = run(at, CharClass::kSpace);
    for (size_t shorter = stop; shorter > at; --shorter) {
      // \s+(?!\S), longest match first
      const bool whole = run(at, CharClass::kSpace, shorter) == shorter;
      if (whole && (shorter == text_.size() || kind(shorter) == CharClass::kSpace)) return shorter;
    }
    return stop;
  }

 private:
  CharClass kind(size_t at) const {
    const CodePoint point = code_point_at(text_, at);
    return point.valid ? char_class(point.value) : CharClass::kOther;
  }
  size_t run(size_t at, CharClass wanted, size_t limit = std::string_view::npos) const {
    while (at < std::min(limit, text_.size()) && kind(at) == wanted) {
      at += static_cast<size_t>(code_point_at(text_, at).length);
    }
    return at;
  }
  std::string_view text_;
};

RC_GTEST_PROP(PreTokenizer, CutsLikeTheRegularExpression, ()) {
  const std::vector<std::string> parts = {" ",  " ",    " ", "\n", "\t",   "\u00a0",  "\u3000", "a",
                                          "b",  "the",  "'", "s",  "ll",   "1",       "٣",      "é",
                                          "日", "🙂", "!", "..", "\xff", "\xe2\x96"};
  std::string text;
  for (const std::string& part :
       *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts))) {
    text += part;
  }
  const Oracle oracle(text);
  for (size_t at = 0; at < text.size(); at = gpt2_piece_end(text, at)) {
    RC_ASSERT(gpt2_piece_end(text, at) == oracle.end(at));
  }
}

std::vector<std::string> llama3_pieces(std::string_view text, int digits = 3) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = llama3_piece_end(text, begin, digits);
    result.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

// What the package `tokenizers` gives for the same texts.
TEST(PreTokenizer, Llama3TakesOneCharacterBeforeAWordAndThreeDigits) {
  EXPECT_THAT(llama3_pieces("a\tb (c)d"), ElementsAre("a", "\tb", " (", "c", ")d"));
  EXPECT_THAT(llama3_pieces("x12345 678"), ElementsAre("x", "123", "45", " ", "678"));
  EXPECT_THAT(llama3_pieces("1234", 1), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(llama3_pieces("a\nb\r\nc"), ElementsAre("a", "\n", "b", "\r\n", "c"));
}

TEST(PreTokenizer, Llama3TakesContractionsInAnyCase) {
  EXPECT_THAT(llama3_pieces("I'LL it'S we'Ve"), ElementsAre("I", "'LL", " it", "'S", " we", "'Ve"));
  EXPECT_THAT(llama3_pieces("it'\u017f"), ElementsAre("it", "'\u017f"));
  EXPECT_THAT(llama3_pieces("'hello"), ElementsAre("'hello"));
}

TEST(PreTokenizer, Llama3KeepsLineEndsTogetherAndBehindPunctuation) {
  EXPECT_THAT(llama3_pieces("end.\n\nNext"), ElementsAre("end", ".\n\n", "Next"));
  EXPECT_THAT(llama3_pieces("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(llama3_pieces("a   1"), ElementsAre("a", "  ", " ", "1"));
  EXPECT_THAT(llama3_pieces("a  "), ElementsAre("a", "  "));
}

}  // namespace
}  // namespace lockstep::train
