#include "dist/group/peer_note.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace lockstep::dist {
namespace {

/// `text` with its 64-bit word `index` replaced.
std::string with_word(std::string text, size_t index, uint64_t word) {
  std::memcpy(text.data() + index * sizeof word, &word, sizeof word);
  return text;
}

Question question() {
  return {{.group = 11,
           .sequence = 12,
           .kind = OpKind::kReceive,
           .dtype = DType::kF64,
           .reduction = {ReduceOp::kPremultipliedSum, 0.3, 14},
           .root = 15,
           .count = 16,
           .deal = 17}};
}

TEST(PeerNote, AQuestionIsReadAsItWasWritten) {
  const auto read = decode_question(encode(question()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->signature, question().signature);
  EXPECT_FALSE(decode_answer(encode(question())));
}

TEST(PeerNote, AnAnswerIsReadAsItWasWritten) {
  for (const auto where : {Answer::Where::kNotYet, Answer::Where::kThere, Answer::Where::kDone}) {
    const std::string text =
        encode(Answer{.group = 1, .sequence = 2, .where = where, .called = 4, .awaited = 5});
    const auto read = decode_answer(text);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->group, 1u);
    EXPECT_EQ(read->sequence, 2u);
    EXPECT_EQ(read->where, where);
    EXPECT_EQ(read->called, 4u);
    EXPECT_EQ(read->awaited, 5u);
    EXPECT_FALSE(decode_question(text));
  }
}

TEST(PeerNote, WhatNoRankOfThisBuildWritesIsNone) {
  const std::string asked = encode(question());
  const std::string answered = encode(Answer());
  EXPECT_FALSE(decode_question(asked.substr(1)));
  EXPECT_FALSE(decode_question(asked + "x"));
  EXPECT_FALSE(decode_answer(answered + "x"));
  EXPECT_FALSE(decode_question(with_word(asked, 0, 'A')));
  EXPECT_FALSE(decode_answer(with_word(answered, 0, 'Q')));
  // One more than the last operation, dtype, reduction and place.
  EXPECT_FALSE(decode_question(with_word(asked, 3, 9)));
  EXPECT_FALSE(decode_question(with_word(asked, 4, kDTypeCount)));
  EXPECT_TRUE(decode_question(with_word(asked, 4, kDTypeCount - 1)));
  EXPECT_FALSE(decode_question(with_word(asked, 5, 5)));
  EXPECT_FALSE(decode_answer(with_word(answered, 3, 3)));
}

}  // namespace
}  // namespace lockstep::dist
