#include "train/page/file_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/files/regular_file.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::Pair;

struct ReadLines {
  std::vector<std::pair<std::string, int64_t>> lines;
  bool is_cut = false;
};

ReadLines lines_in(const std::string& content) {
  const TemporaryDirectory folder;
  put_file(folder / "file", content);
  ReadLines found;
  found.is_cut = for_each_line(folder / "file", [&](std::string_view line, int64_t number) {
    found.lines.emplace_back(line, number);
  });
  return found;
}

TEST(FileLines, AreNumberedFromOneAndEndWithANewline) {
  const ReadLines whole = lines_in("a\n\nbc\n");
  EXPECT_THAT(whole.lines, ElementsAre(Pair("a", 1), Pair("", 2), Pair("bc", 3)));
  EXPECT_FALSE(whole.is_cut);
  const ReadLines cut = lines_in("a\nbc");
  EXPECT_THAT(cut.lines, ElementsAre(Pair("a", 1)));
  EXPECT_TRUE(cut.is_cut);
  EXPECT_TRUE(lines_in("").lines.empty());
  EXPECT_FALSE(lines_in("").is_cut);
}

TEST(FileLines, MayLieAcrossThePiecesThatAreRead) {
  constexpr size_t kPiece = size_t{1} << 20;
  const std::string longer(2 * kPiece + 7, 'x');
  EXPECT_THAT(lines_in("a\n" + longer + "\nb\n").lines,
              ElementsAre(Pair("a", 1), Pair(longer, 2), Pair("b", 3)));
  // The newline is the last byte of a piece, and the first of the next one.
  for (const size_t size : {kPiece - 1, kPiece}) {
    const std::string text(size, 'y');
    const ReadLines found = lines_in(text + "\nb\n");
    EXPECT_THAT(found.lines, ElementsAre(Pair(text, 1), Pair("b", 2))) << size;
    EXPECT_FALSE(found.is_cut);
    EXPECT_FALSE(lines_in(text + "\n").is_cut);
  }
  EXPECT_TRUE(lines_in(std::string(kPiece, 'y')).is_cut);
}

TEST(FileLines, OfAFileThatIsNotThereAreRefused) {
  const TemporaryDirectory folder;
  EXPECT_THROW(for_each_line(folder / "none", [](std::string_view, int64_t) {}), FileError);
}

}  // namespace
}  // namespace lockstep::train
