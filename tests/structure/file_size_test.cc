#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

constexpr int kLongest = 800;
constexpr int kUsual = 400;

TEST(FileSize, NoSourceFileIsLongerThan800Lines) {
  std::vector<std::string> too_long;
  for (const SourceFile& file : read_source_tree(LOCKSTEP_SOURCE_DIR)) {
    if (file.lines > kLongest) {
      too_long.push_back(file.path + ": " + std::to_string(file.lines) + " lines");
    }
  }
  EXPECT_TRUE(too_long.empty()) << "split these by noun:\n" << join(too_long);
}

TEST(FileSize, NineInTenSourceFilesStayUnder400Lines) {
  std::vector<SourceFile> files = read_source_tree(LOCKSTEP_SOURCE_DIR);
  ASSERT_FALSE(files.empty());
  std::vector<std::string> over;
  for (const SourceFile& file : files) {
    if (file.lines >= kUsual) over.push_back(file.path + ": " + std::to_string(file.lines));
  }
  EXPECT_LE(over.size() * 10, files.size()) << over.size() << " of " << files.size() << " files:\n"
                                            << join(over);
}

TEST(FileSize, LinesAreCountedWithAndWithoutATrailingNewline) {
  EXPECT_EQ(parse_source("a.h", "").lines, 0);
  EXPECT_EQ(parse_source("a.h", "one\ntwo\n").lines, 2);
  EXPECT_EQ(parse_source("a.h", "one\n\nthree").lines, 3);
}

}  // namespace
}  // namespace lockstep::structure
