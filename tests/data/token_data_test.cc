#include "data/token_data.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/data/sequences.h"

namespace lockstep::train {
namespace {

using Tokens = std::vector<int64_t>;

/// Tokens begin, begin + 1, ..., so that a window shows its own position.
TokenPart counting(uint32_t begin, uint32_t count) {
  std::vector<uint32_t> ids(count);
  std::iota(ids.begin(), ids.end(), begin);
  return {"part" + std::to_string(begin), TokenArray::copy_of(ids)};
}

TokenDataOptions options(WindowOrder order, int64_t sequences_per_step = 4, uint64_t seed = 1) {
  return {.vocabulary = 100000,
          .seed = seed,
          .order = order,
          .sequences_per_step = sequences_per_step,
          .tokenizer = nullptr};
}

/// First tokens of the input sequences of one step.
Tokens starts(const TokenSource& source, int64_t step, int64_t count, int64_t length) {
  Tokens inputs(static_cast<size_t>(count * length)), targets(inputs.size());
  fill_sequences(source, step, 0, length, inputs, targets);
  Tokens firsts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(targets[i], inputs[i] + 1);
    if (i % static_cast<size_t>(length) == 0) firsts.push_back(inputs[i]);
  }
  return firsts;
}

TEST(TokenData, RandomWindowsReachEveryOffsetOfEveryPartAndSpanNone) {
  const TokenData data({counting(0, 30), counting(1000, 5), counting(2000, 12)}, {},
                       options(WindowOrder::kRandom));
  std::set<int64_t> seen;
  for (int64_t step = 0; step < 400; ++step) {
    for (const int64_t start : starts(data, step, 4, 8)) seen.insert(start);
  }
  std::set<int64_t> expected;
  for (int64_t i = 0; i < 22; ++i) expected.insert(i);
  for (int64_t i = 0; i < 4; ++i) expected.insert(2000 + i);
  EXPECT_EQ(seen, expected);  // the part of 5 is shorter than a window of 9 tokens
}

TEST(TokenData, ShuffledEpochsTakeEveryWindowOnceInAnotherOrder) {
  // 6 + 2 windows of 4; the part of 4 tokens is too short for one, as targets need a fifth.
  const TokenData data({counting(0, 25), counting(1000, 4), counting(2000, 9)}, {},
                       options(WindowOrder::kShuffled));
  const std::set<int64_t> expected = {0, 4, 8, 12, 16, 20, 2000, 2004};
  std::set<Tokens> orders;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    Tokens order = starts(data, 2 * epoch, 4, 4);
    for (const int64_t start : starts(data, 2 * epoch + 1, 4, 4)) order.push_back(start);
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()), expected) << "epoch " << epoch;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(TokenData, EpochsEndWithinAStepToo) {
  const TokenData data({counting(0, 13)}, {}, options(WindowOrder::kShuffled, 2));
  std::map<int64_t, int> counts;
  for (int64_t step = 0; step < 30; ++step) {
    for (const int64_t start : starts(data, step, 2, 4)) ++counts[start];
  }
  EXPECT_EQ(counts, (std::map<int64_t, int>{{0, 20}, {4, 20}, {8, 20}}));
}

TEST(TokenData, ASequenceDependsOnSeedStepAndIndexOnly) {
  for (const WindowOrder order : {WindowOrder::kRandom, WindowOrder::kShuffled}) {
    const TokenData data({counting(0, 5000)}, {}, options(order, 8));
    Tokens whole(64), targets(64), part(16), part_targets(16);
    fill_sequences(data, 3, 0, 8, whole, targets);
    for (int64_t rank = 0; rank < 4; ++rank) {
      fill_sequences(data, 3, rank * 2, 8, part, part_targets);
      EXPECT_TRUE(
          std::ranges::equal(part, std::span(whole).subspan(static_cast<size_t>(rank) * 16, 16)));
    }
    const TokenData same({counting(0, 5000)}, {}, options(order, 8));
    EXPECT_EQ(starts(same, 3, 8, 8), starts(data, 3, 8, 8));
    EXPECT_NE(starts(data, 4, 8, 8), starts(data, 3, 8, 8));
    const TokenData reseeded({counting(0, 5000)}, {}, options(order, 8, 2));
    EXPECT_NE(starts(reseeded, 3, 8, 8), starts(data, 3, 8, 8));
  }
}

TEST(TokenData, ValidationPredictsEveryTokenButTheFirstOfEachPart) {
  const TokenData data({counting(0, 20)}, {counting(100, 8), counting(200, 1), counting(300, 5)},
                       options(WindowOrder::kRandom));
  EXPECT_EQ(data.held_out_tokens(), 11);
  ASSERT_EQ(data.validation_windows(3), 3 + 2);
  Tokens inputs(15), targets(15);
  EXPECT_EQ(fill_validation(data, 0, 3, inputs, targets), 11);
  EXPECT_EQ(inputs, (Tokens{100, 101, 102, 103, 104, 105, 106, 0, 0, 300, 301, 302, 303, 0, 0}));
  constexpr int64_t kNone = kIgnoredTarget;
  EXPECT_EQ(targets, (Tokens{101, 102, 103, 104, 105, 106, 107, kNone, kNone, 301, 302, 303, 304,
                             kNone, kNone}));
}

TEST(TokenData, BytesPerHeldOutTokenComeFromTheTokenizer) {
  TokenDataOptions with = options(WindowOrder::kRandom);
  with.tokenizer = std::make_shared<ByteTokenizer>();
  EXPECT_EQ(TokenData({counting(0, 20)}, {counting(0, 9)}, with).held_out_bytes_per_token(), 1.0);
  EXPECT_EQ(TokenData({counting(0, 20)}, {}, with).held_out_bytes_per_token(), 0.0);
  EXPECT_EQ(TokenData({counting(0, 20)}, {counting(0, 9)}, options(WindowOrder::kRandom))
                .held_out_bytes_per_token(),
            0.0);
}

TEST(TokenData, TokensBeyondTheVocabularyAreNamedWithTheirPlace) {
  TokenDataOptions small = options(WindowOrder::kShuffled, 1);
  small.vocabulary = 10;
  const TokenData data({counting(8, 3)}, {counting(7, 5)}, small);
  Tokens inputs(2), targets(2);
  EXPECT_TRUE(says(message_of<DataError>([&] { data.sequence(0, 0, inputs, targets); }),
                   "[data] part8: token 2 of the file is 10: expected ids below the model's "
                   "vocabulary of 10"));
  EXPECT_NO_THROW(data.validation_window(0, inputs, targets));
  EXPECT_TRUE(says(message_of<DataError>([&] { data.validation_window(1, inputs, targets); }),
                   "part7: token 3 of the file is 10"));
}

TEST(TokenData, TooFewTokensAreRefused) {
  for (const WindowOrder order : {WindowOrder::kRandom, WindowOrder::kShuffled}) {
    const TokenData data({counting(0, 8), counting(100, 8)}, {}, options(order));
    EXPECT_NO_THROW(starts(data, 0, 4, 7));
    EXPECT_TRUE(says(message_of<DataError>([&] { starts(data, 0, 4, 8); }),
                     "16 training tokens are too few for sequences of length 8"));
  }
  EXPECT_THROW(TokenData({}, {}, options(WindowOrder::kRandom)), DataError);
}

TEST(TokenData, TheIdentityDependsOnEveryTokenAlsoOfTheHeldOutPart) {
  // Between the runs of tokens that the fingerprint covers.
  constexpr size_t kUnseen = 6'000;
  const auto data = [](bool other_training, bool other_held_out) {
    std::vector<uint32_t> training(200'000), held_out(100);
    if (other_training) training[kUnseen] = 1;
    if (other_held_out) held_out[50] = 1;
    return TokenData({{"training", TokenArray::copy_of(training)}},
                     {{"held out", TokenArray::copy_of(held_out)}}, options(WindowOrder::kRandom));
  };
  const TokenData usual = data(false, false);
  EXPECT_EQ(data(true, false).fingerprint(), usual.fingerprint());
  EXPECT_EQ(data(false, false).identity(), usual.identity());
  EXPECT_NE(data(true, false).identity(), usual.identity());
  EXPECT_NE(data(false, true).identity(), usual.identity());
}

TEST(TokenData, TheWidthOfTokensInMemoryDoesNotChangeTheFingerprint) {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += static_cast<char>(i * 7 % 256);
  const auto fingerprint = [](TokenArray tokens) {
    return TokenData({{"text", std::move(tokens)}}, {}, options(WindowOrder::kRandom))
        .fingerprint();
  };
  std::vector<uint32_t> ids;
  ByteTokenizer().encode(text, ids);
  EXPECT_EQ(fingerprint(TokenArray(std::as_bytes(std::span(text)), 1, nullptr)),
            fingerprint(TokenArray::copy_of(ids)));
}

}  // namespace
}  // namespace lockstep::train
