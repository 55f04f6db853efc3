#include "data/text_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/data/sequences.h"

namespace lockstep::train {
namespace {

using Tokens = std::vector<int64_t>;

struct Batch {
  Tokens inputs, targets;
  friend bool operator==(const Batch&, const Batch&) = default;
};

Batch sequences(const TokenSource& source, int64_t step, int64_t first, int64_t count,
                int64_t length) {
  Batch batch{Tokens(static_cast<size_t>(count * length)),
              Tokens(static_cast<size_t>(count * length))};
  fill_sequences(source, step, first, length, batch.inputs, batch.targets);
  return batch;
}

class ByteTextTest : public testing::Test {
 protected:
  /// A text of bytes 0, 1, ..., size - 1, so that a window shows its own offset.
  ByteText counting(int size, int64_t held_out, uint64_t seed = 1) {
    std::string text;
    for (int i = 0; i < size; ++i) text += static_cast<char>(i);
    put_file(folder_ / "text", text);
    return {folder_ / "text", held_out, seed};
  }
  std::string refusal(const std::filesystem::path& path, int64_t held_out) {
    return message_of<DataError>([&] { ByteText text(path, held_out, 1); });
  }
  TemporaryDirectory folder_;
};

TEST_F(ByteTextTest, SequencesAreWindowsOfTheTrainingPartWithTargetsOneAhead) {
  const ByteText text = counting(256, 100);
  std::set<int64_t> starts;
  for (int64_t step = 0; step < 500; ++step) {
    const Batch batch = sequences(text, step, 0, 4, 8);
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      EXPECT_EQ(batch.targets[i], batch.inputs[i] + 1);
      if (i % 8 == 0) starts.insert(batch.inputs[i]);
      if (i % 8 != 0) {
        EXPECT_EQ(batch.inputs[i], batch.inputs[i - 1] + 1);
      }
      EXPECT_LT(batch.targets[i], 156);
    }
  }
  // All 148 windows are reached, including the first and the last.
  EXPECT_EQ(starts.size(), 148u);
}

TEST_F(ByteTextTest, OffsetsAreUniform) {
  const ByteText text = counting(18, 0);
  std::map<int64_t, int> counts;
  for (const int64_t start : sequences(text, 0, 0, 16000, 1).inputs) ++counts[start];
  double chi_square = 0;
  for (const auto& [start, count] : counts) {
    const double expected = 16000.0 / 17;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_EQ(counts.size(), 17u);
  EXPECT_LT(chi_square, 39.3);  // 16 degrees of freedom: exceeded with probability 0.001
}

TEST_F(ByteTextTest, ASequenceDependsOnSeedStepAndIndexOnly) {
  const ByteText text = counting(256, 0);
  const Batch whole = sequences(text, 7, 0, 16, 8);
  Batch joined;
  for (int64_t first : {0, 4, 8, 12}) {
    const Batch part = sequences(text, 7, first, 4, 8);
    joined.inputs.insert(joined.inputs.end(), part.inputs.begin(), part.inputs.end());
    joined.targets.insert(joined.targets.end(), part.targets.begin(), part.targets.end());
  }
  EXPECT_EQ(joined, whole);
  EXPECT_EQ(sequences(counting(256, 0), 7, 0, 16, 8), whole);
  EXPECT_NE(sequences(text, 8, 0, 16, 8), whole);
  EXPECT_NE(sequences(text, 7, 16, 16, 8), whole);
  EXPECT_NE(sequences(counting(256, 0, 2), 7, 0, 16, 8), whole);
  EXPECT_NE(sequences(counting(256, 0, 1 + (uint64_t{1} << 32)), 7, 0, 16, 8), whole);
}

TEST_F(ByteTextTest, ValidationWindowsPredictEveryHeldOutByteOnce) {
  const ByteText text = counting(100, 30);
  ASSERT_EQ(text.held_out().size(), 30u);
  ASSERT_EQ(text.validation_windows(8), 4);
  Batch batch{Tokens(5 * 8), Tokens(5 * 8)};
  EXPECT_EQ(fill_validation(text, 0, 8, batch.inputs, batch.targets), 30);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(batch.inputs[i], i < 30 ? 69 + static_cast<int64_t>(i) : 0);
    EXPECT_EQ(batch.targets[i], i < 30 ? 70 + static_cast<int64_t>(i) : kIgnoredTarget);
  }
  EXPECT_EQ(counting(100, 32).validation_windows(8), 4);
  EXPECT_EQ(counting(100, 0).validation_windows(8), 0);
}

TEST_F(ByteTextTest, BytesAbove127AreTokensUpTo255) {
  put_file(folder_ / "text", "\xff\xfe\xff\xfe");
  const ByteText text(folder_ / "text", 0, 1);
  const Batch batch = sequences(text, 0, 0, 1, 3);
  EXPECT_EQ(batch.inputs, (Tokens{255, 254, 255}));
  EXPECT_EQ(batch.targets, (Tokens{254, 255, 254}));
}

TEST_F(ByteTextTest, FilesThatGiveNoTextAreRefusedByName) {
  EXPECT_TRUE(says(refusal(folder_ / "gone", 0), "gone: No such file or directory"));
  EXPECT_TRUE(says(refusal(folder_.path(), 0), folder_.path().string() + ": Is a directory"));
  put_file(folder_ / "empty", "");
  EXPECT_TRUE(says(refusal(folder_ / "empty", 0), "empty: the text is empty"));
  put_file(folder_ / "text", "12345");
  EXPECT_TRUE(says(refusal(folder_ / "text", 5), "cannot hold out 5 bytes of a text of 5"));
  EXPECT_TRUE(says(refusal(folder_ / "text", -1), "cannot hold out -1 bytes"));
}

// Reading /proc/self/mem fails at its first page, even for root.
TEST_F(ByteTextTest, AFileThatFailsWhileReadingIsRefusedByName) {
  EXPECT_TRUE(says(refusal("/proc/self/mem", 0), "[open] /proc/self/mem: Input/output error"));
}

TEST_F(ByteTextTest, ATextShorterThanASequenceIsRefused) {
  const ByteText text = counting(20, 10);
  EXPECT_NO_THROW(sequences(text, 0, 0, 1, 9));
  EXPECT_TRUE(says(message_of<DataError>([&] { sequences(text, 0, 0, 1, 10); }),
                   "training part of 10 bytes is too short for sequences of length 10"));
}

TEST(RandomTokens, CoverTheVocabularyAndRepeatForTheSameStep) {
  const RandomTokens source(11, 3);
  const Batch batch = sequences(source, 5, 2, 8, 33);
  EXPECT_EQ(std::set<int64_t>(batch.inputs.begin(), batch.inputs.end()).size(), 11u);
  EXPECT_EQ(*std::ranges::min_element(batch.inputs), 0);
  EXPECT_EQ(*std::ranges::max_element(batch.inputs), 10);
  for (size_t t = 0; t + 1 < 33; ++t) EXPECT_EQ(batch.targets[t], batch.inputs[t + 1]);
  EXPECT_EQ(sequences(source, 5, 2, 8, 33), batch);
  EXPECT_NE(sequences(source, 6, 2, 8, 33), batch);
  EXPECT_NE(sequences(RandomTokens(11, 4), 5, 2, 8, 33), batch);
  EXPECT_THROW(RandomTokens(0, 1), DataError);
}

TEST(RandomTokens, NeighboursAreEqualByChanceOnly) {
  const Batch batch = sequences(RandomTokens(1000, 3), 0, 0, 1, 2000);
  int equal = 0;
  for (size_t t = 0; t < batch.inputs.size(); ++t) equal += batch.inputs[t] == batch.targets[t];
  EXPECT_LT(equal, 20);
}

TEST(TokenSource, BuffersThatHoldNoWholeSequencesAreRefused) {
  const RandomTokens source(11, 3);
  Tokens inputs(10), targets(10), fewer(5);
  EXPECT_THROW(fill_validation(source, 0, 3, inputs, targets), DataError);
  EXPECT_THROW(fill_validation(source, 0, 5, inputs, fewer), DataError);
  EXPECT_THROW(fill_validation(source, 0, 0, inputs, targets), DataError);
}

}  // namespace
}  // namespace lockstep::train
