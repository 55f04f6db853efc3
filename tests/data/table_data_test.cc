#include "data/table_data.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/error.h"
#include "data/token_source.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using Features = std::vector<float>;

std::string gzipped(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  std::string packed(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<unsigned char*>(packed.data());
  stream.avail_out = static_cast<unsigned>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate failed");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// Rows "i, 10 i, class i mod 3".
std::string counting(int rows) {
  std::string text;
  for (int i = 0; i < rows; ++i) {
    text += std::to_string(i) + "," + std::to_string(10 * i) + "," + std::to_string(i % 3) + "\n";
  }
  return text;
}

class TableDataTest : public testing::Test {
 protected:
  std::filesystem::path file(std::string_view content, std::string_view name = "table.csv") {
    put_file(folder_ / name, content);
    return folder_ / name;
  }
  TableData table(std::string_view content, TableDataOptions options = {}) {
    return TableData(file(content), options);
  }
  std::string refusal(std::string_view content, TableDataOptions options = {}) {
    return message_of<DataError>([&] { table(content, options); });
  }

  TemporaryDirectory folder_;
};

/// First features of the samples of one step; checks their labels.
std::vector<int> starts(const SampleSource& source, int64_t step, int64_t first, size_t count) {
  Features inputs(count * static_cast<size_t>(source.features()));
  std::vector<int64_t> labels(count);
  fill_samples(source, step, first, inputs, labels);
  std::vector<int> found;
  for (size_t i = 0; i < count; ++i) {
    found.push_back(static_cast<int>(inputs[i * static_cast<size_t>(source.features())]));
    EXPECT_EQ(labels[i], found.back() % 3);
  }
  return found;
}

TEST_F(TableDataTest, ReadsFeaturesAndTheClassThatFollowsThem) {
  const TableData data = table("1,2.5,0\n-3e-1,+4,2\r\n 5 ,\t6, 1.0\n\n", {.held_out_rows = 2});
  EXPECT_EQ(data.features(), 2);
  EXPECT_EQ(data.classes(), 3);
  EXPECT_EQ(data.training_samples(), 1);
  ASSERT_EQ(data.held_out_samples(), 2);
  Features row(2);
  EXPECT_EQ(data.sample(7, 3, row), 0);
  EXPECT_EQ(row, (Features{1, 2.5F}));
  EXPECT_EQ(data.held_out_sample(0, row), 2);
  EXPECT_EQ(row, (Features{-0.3F, 4}));
  EXPECT_EQ(data.held_out_sample(1, row), 1);
  EXPECT_EQ(row, (Features{5, 6}));
}

TEST_F(TableDataTest, PassesOverAHeader) {
  // Column names, or the header of scikit-learn's tables: rows, features, class names.
  for (const char* header : {"length,width,class\n", "150,4,setosa,versicolor,virginica\n"}) {
    const TableData data = table(std::string(header) + counting(20));
    EXPECT_EQ(data.features(), 2);
    EXPECT_EQ(data.training_samples() + data.held_out_samples(), 20);
  }
}

TEST_F(TableDataTest, ReadsWhatGzipPacked) {
  const std::string text = counting(5000);
  const TableData plain = table(text);
  const TableData packed(file(gzipped(text), "table.csv.gz"), {});
  EXPECT_EQ(packed.fingerprint(), plain.fingerprint());
  EXPECT_EQ(packed.held_out_samples(), 500);
  // Concatenated gzip members form one file.
  const TableData joined(file(gzipped(text.substr(0, 100)) + gzipped(text.substr(100))), {});
  EXPECT_EQ(joined.fingerprint(), plain.fingerprint());
}

TEST_F(TableDataTest, IsReadAPieceAtATime) {
  const std::string row = "1,2,0\n";
  constexpr size_t kRows = 1 << 16;
  size_t given = 0, largest = 0;
  const auto source = [&](std::span<std::byte> into) {
    largest = std::max(largest, into.size());
    size_t count = 0;
    for (; count < into.size() && given < kRows * row.size(); ++count, ++given) {
      into[count] = static_cast<std::byte>(row[given % row.size()]);
    }
    return count;
  };
  const TableData data(source, "rows", {});
  EXPECT_EQ(data.training_samples() + data.held_out_samples(), static_cast<int64_t>(kRows));
  EXPECT_LE(largest, size_t{64} << 10);
}

TEST_F(TableDataTest, BlankLinesMayOnlyStandAtTheEnd) {
  EXPECT_EQ(table("1,0\n2,1\n \r\n\n  ").training_samples(), 2);
  EXPECT_TRUE(says(refusal("1,0\n\n \n2,1\n"), "table.csv:2: field 1 is \"\""));
  EXPECT_TRUE(says(refusal(" \n\n"), "has no rows"));
}

TEST_F(TableDataTest, DamagedCompressionIsRefused) {
  const std::string whole = gzipped(counting(5000));
  EXPECT_TRUE(says(refusal(whole.substr(0, whole.size() / 2)), "cut off"));
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x40);
  EXPECT_TRUE(says(refusal(damaged), "damaged"));
  EXPECT_TRUE(says(refusal(whole + "more"), "not gzip's"));
}

TEST_F(TableDataTest, FeaturesAreScaledAndLabelsAreNot) {
  const TableData data = table("16,4,2\n8,1,1\n", {.scale = 0.0625, .held_out_rows = 1});
  Features row(2);
  EXPECT_EQ(data.sample(0, 0, row), 2);
  EXPECT_EQ(row, (Features{1, 0.25F}));
}

TEST_F(TableDataTest, TheLastTenthIsHeldOutUnlessSaid) {
  EXPECT_EQ(table(counting(39)).held_out_samples(), 3);
  EXPECT_EQ(table(counting(9)).held_out_samples(), 0);
  EXPECT_EQ(table(counting(39), {.held_out_rows = 20}).held_out_samples(), 20);
  const TableData data = table(counting(40), {.held_out_rows = 10});
  for (int64_t step = 0; step < 100; ++step) {
    for (const int start : starts(data, step, 0, 4)) EXPECT_LT(start, 30);
  }
}

TEST_F(TableDataTest, HeldOutRowsFillUpWithIgnoredOnes) {
  const TableData data = table(counting(8), {.held_out_rows = 3});
  Features inputs(8, 9.0F);
  std::vector<int64_t> labels(4);
  EXPECT_EQ(fill_held_out(data, 1, inputs, labels), 2);
  EXPECT_EQ(inputs, (Features{6, 60, 7, 70, 0, 0, 0, 0}));
  EXPECT_EQ(labels, (std::vector<int64_t>{0, 1, kIgnoredTarget, kIgnoredTarget}));
}

TEST_F(TableDataTest, RandomOrderReachesEveryRowAboutEquallyOften) {
  const TableData data = table(counting(10), {.held_out_rows = 2, .seed = 3});
  std::map<int, int> counts;
  for (int64_t step = 0; step < 1000; ++step) {
    for (const int start : starts(data, step, 0, 4)) ++counts[start];
  }
  EXPECT_EQ(counts.size(), 8u);
  for (const auto& [row, count] : counts) EXPECT_NEAR(count, 500, 100) << row;
}

TEST_F(TableDataTest, ShuffledEpochsTakeEveryRowOnceInAnotherOrder) {
  const TableData data = table(
      counting(14),
      {.held_out_rows = 2, .order = WindowOrder::kShuffled, .seed = 3, .samples_per_step = 4});
  std::set<std::vector<int>> orders;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<int> order;
    for (int64_t step = 3 * epoch; step < 3 * epoch + 3; ++step) {
      for (const int start : starts(data, step, 0, 4)) order.push_back(start);
    }
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 12u) << "epoch " << epoch;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST_F(TableDataTest, ASampleDependsOnSeedStepAndIndexOnly) {
  for (const WindowOrder order : {WindowOrder::kRandom, WindowOrder::kShuffled}) {
    const TableDataOptions options{.order = order, .seed = 5, .samples_per_step = 8};
    const TableData data = table(counting(500), options);
    const std::vector<int> whole = starts(data, 3, 0, 8);
    const std::vector<int> second = starts(data, 3, 4, 4);
    EXPECT_TRUE(std::equal(second.begin(), second.end(), whole.begin() + 4));
    EXPECT_EQ(starts(table(counting(500), options), 3, 0, 8), whole);
    EXPECT_NE(starts(data, 4, 0, 8), whole);
    TableDataOptions reseeded = options;
    reseeded.seed = 6;
    EXPECT_NE(starts(table(counting(500), reseeded), 3, 0, 8), whole);
  }
}

TEST_F(TableDataTest, FingerprintsTellTrainingRowsApart) {
  const TableData data = table(counting(40));
  EXPECT_EQ(table(counting(40)).fingerprint(), data.fingerprint());
  EXPECT_NE(table(counting(50)).fingerprint(), data.fingerprint());
  EXPECT_NE(table(counting(40), {.scale = 2}).fingerprint(), data.fingerprint());
  std::string other = counting(40);
  other[4] = '2';  // changes the class of the first row
  EXPECT_NE(table(other).fingerprint(), data.fingerprint());
}

TEST_F(TableDataTest, WhichRowsAreHeldOutIsPartOfTheIdentity) {
  const ContentHash four = table(counting(40), {.held_out_rows = 4}).identity();
  EXPECT_EQ(table(counting(40), {.held_out_rows = 4}).identity(), four);
  EXPECT_NE(table(counting(40), {.held_out_rows = 5}).identity(), four);
}

TEST_F(TableDataTest, MistakesAreNamedWithFileAndLine) {
  const std::string missing =
      message_of<DataError>([&] { TableData(folder_ / "missing.csv", {}); });
  EXPECT_TRUE(says(missing, "missing.csv"));
  EXPECT_TRUE(says(refusal(""), "table.csv: the table has no rows"));
  EXPECT_TRUE(says(refusal("a,b,class\n"), "table.csv: the table has no rows"));
  EXPECT_TRUE(says(refusal(std::string_view("1,2,0\n\0\1\2,3\n", 13)), "table.csv:2: a zero byte"));
  EXPECT_TRUE(says(refusal("a,b,c\n1,2,0\n1,2,3,0\n"),
                   "table.csv:3: expected 3 fields as in line 2, got 4"));
  EXPECT_TRUE(says(refusal("1,2,0\n\n1,2,0\n"), "table.csv:2: field 1 is \"\": expected a number"));
  EXPECT_TRUE(
      says(refusal("1,2,0\n1,x2,0\n"), "table.csv:2: field 2 is \"x2\": expected a number"));
  EXPECT_TRUE(says(refusal("1,2,0\nnan,2,0\n"), "table.csv:2: field 1 is \"nan\""));
  EXPECT_TRUE(says(refusal("1,2,0\n1,2,0.5\n"),
                   "table.csv:2: the class is 0.5: expected an integer from 0"));
  EXPECT_TRUE(says(refusal("1,2,0\n1,2,-1\n"), "table.csv:2: the class is -1"));
  EXPECT_TRUE(says(refusal("1,2,0\n1,2,3\n", {.classes = 3}),
                   "table.csv:2: the class is 3: expected an integer from 0 to 2"));
  EXPECT_TRUE(says(refusal("1,2,0\n", {.features = 3}), "table.csv:1: 2 features"));
  EXPECT_TRUE(says(refusal("7\n8\n"), "table.csv:1: expected numbers and a class"));
  EXPECT_TRUE(says(refusal(counting(4), {.held_out_rows = 4}), "cannot hold out 4 rows"));
}

TEST(RandomSamples, FeaturesOfASampleAreIndependent) {
  constexpr int kSamples = 4000;
  const RandomSamples data(4, 2, 9);
  double products[4][4] = {};
  Features row(4);
  for (int64_t i = 0; i < kSamples; ++i) {
    data.sample(0, i, row);
    for (size_t a = 0; a < 4; ++a) {
      for (size_t b = 0; b < a; ++b) products[a][b] += row[a] * row[b];
    }
  }
  for (size_t a = 0; a < 4; ++a) {
    for (size_t b = 0; b < a; ++b) EXPECT_NEAR(products[a][b] / kSamples, 0, 0.08) << a << " " << b;
  }
}

TEST(RandomSamples, AreNormalAndEvenlyLabelled) {
  const RandomSamples data(33, 4, 9);
  double sum = 0, squares = 0;
  std::map<int64_t, int> labels;
  constexpr int kSamples = 2000;
  Features row(33);
  for (int64_t i = 0; i < kSamples; ++i) {
    ++labels[data.sample(i / 100, i % 100, row)];
    for (const float value : row) sum += value, squares += value * value;
  }
  EXPECT_NEAR(sum / (33 * kSamples), 0, 0.02);
  EXPECT_NEAR(squares / (33 * kSamples), 1, 0.02);
  EXPECT_EQ(labels.size(), 4u);
  for (const auto& [label, count] : labels) EXPECT_NEAR(count, kSamples / 4, 100) << label;
  Features again(33);
  EXPECT_EQ(data.sample(19, 99, again), data.sample(19, 99, row));
  EXPECT_EQ(again, row);
  EXPECT_EQ(data.held_out_samples(), 0);
  EXPECT_THROW(RandomSamples(0, 4, 1), DataError);
}

}  // namespace
}  // namespace lockstep::train
