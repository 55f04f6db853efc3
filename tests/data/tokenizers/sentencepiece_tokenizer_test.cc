#include "data/tokenizers/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/error.h"
#include "data/tokenizers/sentencepiece_model.pb.h"
#include "data/tokenizers/sentencepiece_training.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using Ids = std::vector<uint32_t>;
using sentencepiece::Model;
using sentencepiece::Piece;

std::string rhyme() {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += "The house that Jack built.\nThis is the malt that lay in the house.\n";
  }
  return text;
}

const std::string& rhyme_model() {
  static const std::string kModel = train_sentencepiece(rhyme(), 305);
  return kModel;
}

SentencePieceTokenizer rhyme_tokenizer() { return {rhyme_model(), "rhyme"}; }

Model parsed(const std::string& bytes) {
  Model model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

std::vector<std::string> pieces_of(const Model& model, const Ids& ids) {
  std::vector<std::string> pieces;
  for (const uint32_t id : ids) pieces.push_back(model.pieces(static_cast<int>(id)).text());
  return pieces;
}

TEST(SentencePieceTraining, LearnsTheCommonWordsOfTheText) {
  const SentencePieceTokenizer tokenizer = rhyme_tokenizer();
  const Model model = parsed(rhyme_model());
  EXPECT_EQ(tokenizer.vocabulary(), 305);
  EXPECT_EQ(tokenizer.end_of_text(), 2u);
  EXPECT_THAT(pieces_of(model, encode(tokenizer, "The house that\nis")),
              testing::ElementsAre("The", "▁house", "▁that", "<0x0A>", "is"));
}

TEST(SentencePieceTraining, TheSameTextGivesTheSameModel) {
  EXPECT_TRUE(train_sentencepiece(rhyme(), 305) == rhyme_model());
  EXPECT_FALSE(train_sentencepiece(rhyme(), 304) == rhyme_model());
}

TEST(SentencePieceTraining, MoreTokensMeanShorterTexts) {
  size_t before = rhyme().size();
  for (const int vocabulary : {280, 290, 300, 310}) {
    const SentencePieceTokenizer tokenizer(train_sentencepiece(rhyme(), vocabulary), "rhyme");
    EXPECT_LE(tokenizer.vocabulary(), vocabulary);
    const size_t now = encode(tokenizer, rhyme()).size();
    EXPECT_LT(now, before);
    before = now;
  }
}

TEST(SentencePieceTraining, StopsWhenNoPairOccursTwice) {
  const SentencePieceTokenizer tokenizer(train_sentencepiece("abcdefg", 1000), "letters");
  EXPECT_EQ(tokenizer.vocabulary(), 259 + 7);
}

TEST(SentencePieceTraining, AVocabularyWithoutRoomForTheCharactersIsRefused) {
  EXPECT_TRUE(says(message_of<DataError>([] { train_sentencepiece("abcdefg", 265); }),
                   "too small for this text: expected at least 266"));
}

TEST(SentencePieceTokenizer, MergesTheHighestScoreFirstTheLeftmostAmongEquals) {
  Model model = parsed(train_sentencepiece("abc", 1000));
  const auto add = [&](const std::string& text, float score) {
    Piece& piece = *model.add_pieces();
    piece.set_text(text);
    piece.set_score(score);
  };
  add("bc", -1);
  add("ab", -2);
  add("aa", -2);
  const SentencePieceTokenizer tokenizer(model.SerializeAsString(), "m");
  const auto pieces = [&](std::string_view text) {
    return pieces_of(model, encode(tokenizer, text));
  };
  EXPECT_THAT(pieces("abc"), testing::ElementsAre("a", "bc"));
  EXPECT_THAT(pieces("aab"), testing::ElementsAre("aa", "b"));
  EXPECT_THAT(pieces("aaa"), testing::ElementsAre("aa", "a"));
}

TEST(SentencePieceTokenizer, AModelThatPutsASpaceFirstRoundTrips) {
  Model model = parsed(rhyme_model());
  model.mutable_normalizer()->set_add_dummy_prefix(true);
  const SentencePieceTokenizer tokenizer(model.SerializeAsString(), "m");
  EXPECT_THAT(pieces_of(model, encode(tokenizer, "house that")),
              testing::ElementsAre("▁house", "▁that"));
  EXPECT_EQ(decode(tokenizer, encode(tokenizer, "house that")), "house that");
  EXPECT_EQ(decode(tokenizer, encode(tokenizer, " house")), " house");
  EXPECT_TRUE(encode(tokenizer, "").empty());
}

TEST(SentencePieceTokenizer, ATextIsContinuedWithoutTheSpaceThatBeginsOne) {
  Model model = parsed(rhyme_model());
  model.mutable_normalizer()->set_add_dummy_prefix(true);
  const SentencePieceTokenizer tokenizer(model.SerializeAsString(), "m");
  for (const auto& [first, second] :
       std::vector<std::pair<std::string, std::string>>{{"The house", " that Jack"},
                                                        {"The\n", "house that"},
                                                        {"The ", "house"},
                                                        {"The h", "ouse"},
                                                        {"house", "\nThis"},
                                                        {"Jack", "."},
                                                        {"", "house"}}) {
    Ids ids = encode(tokenizer, first);
    encode_continued(tokenizer, second, false, ids);
    std::string text;
    for (const uint32_t id : ids) tokenizer.decode(id, text);
    EXPECT_EQ(text, (first.empty() ? "" : " ") + first + second);
  }
  Ids ids;
  encode_continued(tokenizer, " house that", true, ids);
  EXPECT_EQ(ids, encode(tokenizer, "house that"));
}

TEST(SentencePieceTokenizer, PiecesAcrossWordsAreFound) {
  Model model = parsed(rhyme_model());
  Piece& piece = *model.add_pieces();
  piece.set_text("e▁");
  piece.set_score(1);
  const SentencePieceTokenizer tokenizer(model.SerializeAsString(), "m");
  EXPECT_THAT(pieces_of(model, encode(tokenizer, "the h")), testing::Contains("e▁"));
}

TEST(SentencePieceTokenizer, SavedFilesGiveTheSameTokenizer) {
  const SentencePieceTokenizer tokenizer = rhyme_tokenizer();
  const TemporaryDirectory folder;
  EXPECT_THAT(tokenizer.save(folder.path()),
              testing::ElementsAre("tokenizer.model", "tokenizer.json", "tokenizer_config.json"));
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->name(), "sentencepiece");
  EXPECT_EQ(loaded->identity(), tokenizer.identity());
}

RC_GTEST_PROP(SentencePieceTokenizer, AnyBytesRoundTrip, ()) {
  static const SentencePieceTokenizer tokenizer = rhyme_tokenizer();
  std::string text = *rc::gen::arbitrary<std::string>();
  for (const std::string& word :
       *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::vector<std::string>{
           " the", "house", "  ", "\n", "▁", "\xff", "\xe2\x96", "é", "<0x41>", "<s>", "\0x"}))) {
    text += word;
  }
  RC_ASSERT(decode(tokenizer, encode(tokenizer, text)) == text);
}

std::string problem(const Model& model) {
  return message_of<DataError>([&] { parse_sentencepiece(model.SerializeAsString(), "m"); });
}

TEST(SentencePieceModel, OtherKindsAreRefusedByName) {
  const Model good = parsed(rhyme_model());
  EXPECT_EQ(problem(good), "(nothing thrown)");
  Model model = good;
  model.mutable_trainer()->set_kind(sentencepiece::Trainer::UNIGRAM);
  EXPECT_TRUE(says(problem(model), "m: its kind is not BPE"));
  model = good;
  model.mutable_trainer()->clear_byte_fallback();
  EXPECT_TRUE(says(problem(model), "it has no byte fallback"));
  model = good;
  model.mutable_normalizer()->set_charsmap("rules");
  EXPECT_TRUE(says(problem(model), "it replaces characters"));
  model = good;
  model.mutable_normalizer()->clear_remove_extra_whitespaces();
  EXPECT_TRUE(says(problem(model), "it removes spaces"));
  model = good;
  *model.add_pieces() = good.pieces(300);
  EXPECT_TRUE(says(problem(model), "piece 305 stands there a second time"));
  model = good;
  model.mutable_pieces(300)->set_text("\xff");
  EXPECT_TRUE(says(problem(model), "piece 300 is no UTF-8 text"));
  model = good;
  model.mutable_pieces(300)->set_type(Piece::USER_DEFINED);
  EXPECT_TRUE(says(problem(model), "piece 300 is user-defined"));
  model = good;
  model.mutable_pieces(3)->set_text("<0xZZ>");
  EXPECT_TRUE(says(problem(model), "piece 3 is no new byte"));
  model = good;
  model.mutable_pieces()->DeleteSubrange(3, 1);
  EXPECT_TRUE(says(problem(model), "each of the 256 bytes, got 255"));
  EXPECT_TRUE(says(message_of<DataError>([] { parse_sentencepiece("\xff\xff", "m"); }),
                   "cannot be read as one"));
  EXPECT_TRUE(says(message_of<DataError>([] { parse_sentencepiece("", "m"); }), "holds no pieces"));
}

RC_GTEST_PROP(SentencePieceModel, DamagedFilesGiveDataErrorOrAModelThatWorks, ()) {
  std::string bytes = rhyme_model();
  const auto at = *rc::gen::inRange<size_t>(0, bytes.size());
  if (*rc::gen::arbitrary<bool>()) {
    bytes.resize(at);
  } else {
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << *rc::gen::inRange(0, 8));
  }
  try {
    const SentencePieceTokenizer tokenizer(bytes, "m");
    for (const uint32_t id : encode(tokenizer, "The house \xff")) {
      RC_ASSERT(id < tokenizer.vocabulary());
    }
  } catch (const DataError& error) {
    RC_ASSERT(std::string(error.what()).starts_with("[tokenizer] m: "));
  }
}

}  // namespace
}  // namespace lockstep::train
