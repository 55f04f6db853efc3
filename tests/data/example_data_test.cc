#include "data/example_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "core/base/error.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/data/example_files.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kRowLength = 12;

class ExampleDataTest : public testing::Test {
 protected:
  ExampleDataTest() {
    std::string lines;
    for (int i = 0; i < 60; ++i) {
      lines += example_line(std::string(static_cast<size_t>(i % 4), 'p'),
                            std::to_string(i) + std::string(static_cast<size_t>(i % 5), 'c'));
    }
    put_file(folder_ / "a.jsonl", lines);
  }
  ExampleSet read() const {
    return {(folder_ / "a.jsonl").string(), {}, {.tokenizer = bytes_, .longest = kRowLength + 1}};
  }
  ExampleData data(bool packed, WindowOrder order = WindowOrder::kShuffled,
                   int64_t sequences_per_step = 4) const {
    ExampleSet training = read();
    ExampleSet held_out = training.take_last(10);
    return {std::move(training),
            std::move(held_out),
            {.vocabulary = 256,
             .length = kRowLength,
             .packed = packed,
             .seed = 7,
             .order = order,
             .sequences_per_step = sequences_per_step,
             .tokenizer = bytes_}};
  }
  TemporaryDirectory folder_;
  const std::shared_ptr<const Tokenizer> bytes_ = std::make_shared<ByteTokenizer>();
};

struct Row {
  std::vector<int64_t> inputs = std::vector<int64_t>(kRowLength);
  std::vector<int64_t> targets = std::vector<int64_t>(kRowLength);

  /// The targets that count, as text.
  std::string counted() const {
    std::string text;
    for (const int64_t target : targets) {
      if (target != kIgnoredTarget) text += static_cast<char>(target);
    }
    return text;
  }
};

Row row_of(const ExampleData& data, int64_t step, int64_t index) {
  Row row;
  data.sequence(step, index, row.inputs, row.targets);
  return row;
}

/// What counts in the examples [first, end): the ends of lines are counted too.
std::multiset<std::string> completions(int first, int end) {
  std::multiset<std::string> lines;
  for (int i = first; i < end; ++i) {
    std::string line = std::to_string(i) + std::string(static_cast<size_t>(i % 5), 'c');
    if (i % 4 == 0) line.erase(0, 1);  // nothing precedes it
    lines.insert(line);
  }
  return lines;
}

void add_lines(const std::string& text, std::multiset<std::string>& lines) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
}

RC_GTEST_PROP(PackRows, EachExampleIsInOneRowAndRowsCouldNotBeJoined,
              (const std::vector<uint8_t>& bytes, uint64_t seed)) {
  std::vector<int64_t> sizes;
  for (const uint8_t byte : bytes) sizes.push_back(1 + byte % 100);
  const ExampleRows rows = pack_rows(sizes, 100, seed);
  std::vector<int64_t> seen;
  int64_t smallest_two = 200;
  std::multiset<int64_t> filled;
  for (const std::vector<int64_t>& row : rows) {
    int64_t sum = 0;
    for (const int64_t each : row) sum += sizes[static_cast<size_t>(each)];
    RC_ASSERT(sum <= 100);
    filled.insert(sum);
    seen.insert(seen.end(), row.begin(), row.end());
  }
  if (filled.size() > 1) smallest_two = *filled.begin() + *std::next(filled.begin());
  RC_ASSERT(smallest_two > 100);
  std::ranges::sort(seen);
  RC_ASSERT(std::ssize(seen) == std::ssize(sizes));
  for (int64_t i = 0; i < std::ssize(seen); ++i) RC_ASSERT(seen[static_cast<size_t>(i)] == i);
  RC_ASSERT(pack_rows(sizes, 100, seed) == rows);
}

TEST_F(ExampleDataTest, APaddedRowIsOneExample) {
  const ExampleData padded = data(false);
  EXPECT_EQ(padded.validation_windows(kRowLength), 10);
  Row row;
  // Example 51: the prompt "ppp", the completion "51c", a line end.
  EXPECT_EQ(padded.validation_window(1, row.inputs, row.targets), 4);
  EXPECT_THAT(row.inputs, ElementsAre('p', 'p', 'p', '5', '1', 'c', '\n', 0, 0, 0, 0, 0));
  EXPECT_THAT(row.targets,
              ElementsAre(-100, -100, '5', '1', 'c', '\n', -100, -100, -100, -100, -100, -100));
}

TEST_F(ExampleDataTest, EveryEpochHasEachExampleOnce) {
  for (const bool packed : {false, true}) {
    const ExampleData source = data(packed);
    std::multiset<std::string> first, second;
    int64_t rows = 0;
    for (; first.size() < 50; ++rows) {
      add_lines(row_of(source, rows / 4, rows % 4).counted(), first);
    }
    EXPECT_EQ(first, completions(0, 50)) << packed;
    EXPECT_LE(rows, packed ? 30 : 50);
    for (int64_t i = rows; i < 2 * rows; ++i) {
      add_lines(row_of(source, i / 4, i % 4).counted(), second);
    }
    EXPECT_EQ(second, first) << packed;
  }
}

TEST_F(ExampleDataTest, EveryEpochHasAnOrderOfItsOwn) {
  const ExampleData source = data(false);  // of 50 rows
  std::vector<std::vector<int64_t>> first, second;
  for (int64_t i = 0; i < 50; ++i) {
    first.push_back(row_of(source, i / 4, i % 4).inputs);
    second.push_back(row_of(source, (i + 50) / 4, (i + 50) % 4).inputs);
  }
  EXPECT_NE(first, second);
}

TEST_F(ExampleDataTest, HeldOutExamplesAreValidatedOnOnceAndNeverTrainedOn) {
  for (const bool packed : {false, true}) {
    const ExampleData source = data(packed);
    std::multiset<std::string> lines;
    int64_t targets = 0;
    Row row;
    for (int64_t i = 0; i < source.validation_windows(kRowLength); ++i) {
      targets += source.validation_window(i, row.inputs, row.targets);
      add_lines(row.counted(), lines);
    }
    EXPECT_EQ(lines, completions(50, 60));
    int64_t bytes = 0;
    for (const std::string& line : lines) bytes += std::ssize(line) + 1;
    EXPECT_EQ(targets, bytes);
    EXPECT_EQ(source.held_out_bytes_per_token(), 1);
  }
}

TEST_F(ExampleDataTest, ATargetFollowsItsInputInItsOwnExample) {
  const ExampleData source = data(true);
  for (int64_t i = 0; i < 30; ++i) {
    const Row row = row_of(source, 0, i);
    for (size_t t = 0; t + 1 < row.inputs.size(); ++t) {
      if (row.targets[t] == kIgnoredTarget) continue;
      EXPECT_EQ(row.targets[t], row.inputs[t + 1]);
      EXPECT_NE(row.inputs[t], '\n');  // the end of the example before
    }
  }
}

TEST_F(ExampleDataTest, RowsAreAFunctionOfTheirNumber) {
  for (const WindowOrder order : {WindowOrder::kRandom, WindowOrder::kShuffled}) {
    const ExampleData one = data(true, order), same = data(true, order);
    const Row late = row_of(one, 40, 3);
    for (int64_t step = 0; step < 40; ++step) row_of(same, step, 1);
    EXPECT_EQ(row_of(same, 40, 3).inputs, late.inputs);
    EXPECT_EQ(row_of(same, 40, 3).targets, late.targets);
  }
  const ExampleData random = data(true, WindowOrder::kRandom);
  std::set<std::vector<int64_t>> rows;
  for (int64_t i = 0; i < 100; ++i) rows.insert(row_of(random, i, 0).inputs);
  EXPECT_GT(rows.size(), 15u);
}

TEST_F(ExampleDataTest, SaysWhereItsRowsAreFrom) {
  const ExampleData source = data(false);
  const std::vector<SampleOrigin> origins = source.origins(3, 4, kRowLength);
  for (int64_t i = 0; i < 4; ++i) {
    const int line = static_cast<int>(origins[static_cast<size_t>(i)].line);
    EXPECT_EQ(
        completions(line - 1, line),
        std::multiset<std::string>{
            row_of(source, 3, i).counted().substr(0, completions(line - 1, line).begin()->size())});
  }
  EXPECT_TRUE(says(file_and_line(data(true).origins(0, 1, kRowLength)[0]), " other"));
  EXPECT_TRUE(says(source.notes()[0], "50 examples to train on, 10 held out; "));
  EXPECT_NE(source.identity(), source.fingerprint());
}

TEST_F(ExampleDataTest, ASampleOfTextContinuesAHeldOutPrompt) {
  const ExampleData source = data(true);
  EXPECT_EQ(decode(*bytes_, source.sample_start(1)), "ppp");
  EXPECT_EQ(decode(*bytes_, source.sample_start(10)), "pp");
}

}  // namespace
}  // namespace lockstep::train
