// Parquet files. Where the module that reads them is not built, that they are refused.

#include "data/parquet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/regular_file.h"
#include "data/example_reader.h"
#include "data/tokenized_text.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Five rows in three groups: id, text, title, prompt, completion and messages. The third text is
/// null, the fourth empty.
const std::string kRows = LOCKSTEP_SOURCE_DIR "/tests/data/parquet/rows.parquet";

std::string all_of(const ByteSource& source) {
  std::string text;
  std::array<std::byte, 7> piece;  // smaller than a row
  for (;;) {
    const size_t count = source(piece);
    text.append(reinterpret_cast<const char*>(piece.data()), count);
    if (count < piece.size()) return text;
  }
}

TEST(ParquetWithoutArrow, IsRefusedWithWhatToDo) {
  if (has_parquet()) GTEST_SKIP() << "this build reads Parquet";
  expect_error<DataError>([] { Documents{kRows}; }, "rows.parquet: expected the module");
}

class Parquet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_parquet()) GTEST_SKIP() << "this build was made without Arrow";
  }

  /// The file with another content.
  std::string with_content(std::string_view content) const {
    const std::string path = folder_.path() / "other.parquet";
    write_text(path, content);
    return path;
  }

  TemporaryDirectory folder_;
};

TEST_F(Parquet, RowsAreLinesWithTheColumnsThatAreAskedFor) {
  EXPECT_EQ(all_of(parquet_rows(kRows, {"text", "id"})),
            "{\"id\":1,\"text\":\"first \\\"row\\\"\\u000a\"}\n"
            "{\"id\":2,\"text\":\"zweite Zeile: äöü\\u0009\\\\\"}\n"
            "{\"id\":3,\"text\":null}\n"
            "{\"id\":4,\"text\":\"\"}\n"
            "{\"id\":5,\"text\":\"last\"}\n");
  EXPECT_THAT(all_of(parquet_rows(kRows, {"messages"})),
              HasSubstr("{\"messages\":[{\"role\":\"user\",\"content\":\"say 1\"},{\"role\":"
                        "\"assistant\",\"content\":\"1\"}]}\n"));
}

TEST_F(Parquet, EachRowIsADocumentAndDamagedOnesCanBeLeftOut) {
  expect_error<DataError>([] { Documents{kRows}; },
                          "rows.parquet:3: \"text\" is null: expected a string");
  const Documents documents(kRows, {.skip_damaged_lines = true});
  ASSERT_EQ(documents.count(), 3U);
  EXPECT_EQ(documents.text(0), "first \"row\"\n");
  EXPECT_EQ(documents.text(1), "zweite Zeile: äöü\t\\");
  EXPECT_EQ(documents.text(2), "last");
  EXPECT_EQ(documents.line(2), 5);
  EXPECT_EQ(Documents(kRows, {.field = "title"}).whole()->substr(0, 5), "a\nb\na");
}

TEST_F(Parquet, RowsAreExamplesAndConversations) {
  ExampleReader pairs(kRows, {});
  std::vector<ExamplePart> parts;
  ASSERT_TRUE(pairs.next(parts));
  EXPECT_THAT(parts, ElementsAre(ExamplePart{"1+1=", false, true}, ExamplePart{"2", true, true}));
  ExampleReader chats(kRows, {.chat = ChatForm()});
  ASSERT_TRUE(chats.next(parts));
  EXPECT_EQ(parts.at(1).text, "say 0");
}

TEST_F(Parquet, AColumnThatIsMissingIsNamedBesideThoseThatAreThere) {
  expect_error<DataError>([] { parquet_rows(kRows, {"content"}); },
                          "rows.parquet: it has no column \"content\": expected one of \"id\", "
                          "\"text\", \"title\", \"prompt\", \"completion\", \"messages\".");
}

TEST_F(Parquet, FilesThatAreNoneOrDamagedAreErrors) {
  expect_error<FileError>([&] { parquet_rows(folder_.path() / "none.parquet", {"text"}); },
                          "No such file");
  expect_error<DataError>([&] { parquet_rows(with_content("text"), {"text"}); },
                          "other.parquet: expected a Parquet file");
  const std::string whole = read_whole_file(kRows);
  expect_error<DataError>(
      [&] { parquet_rows(with_content(whole.substr(0, whole.size() / 2)), {"text"}); },
      "other.parquet: expected a Parquet file");
  std::string flipped = whole;
  for (size_t i = 4; i < 200; ++i) flipped[i] = static_cast<char>(~flipped[i]);
  expect_error<DataError>(
      [&] {
        all_of(parquet_rows(with_content(flipped), {"id", "text"}));
      },
      "other.parquet: it is damaged");
}

TEST_F(Parquet, DamageAnywhereIsAnErrorOrOtherText) {
  const std::string whole = read_whole_file(kRows);
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      all_of(parquet_rows(with_content(damaged), {"id", "text", "messages"}));
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("other.parquet: "));
    }
  }
}

}  // namespace
}  // namespace lockstep::train
