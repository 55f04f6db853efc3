#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

constexpr int kLongest = 600;
constexpr int kUsual = 300;

TEST(FileSize, NoSourceFileIsLongerThan600Lines) {
  std::vector<std::string> too_long;
  for (const SourceFile& file : read_source_tree(LOCKSTEP_SOURCE_DIR)) {
    if (file.lines > kLongest) {
      too_long.push_back(file.path + ": " + std::to_string(file.lines) + " lines");
    }
  }
  EXPECT_TRUE(too_long.empty()) << "split these by noun:\n" << join(too_long);
}

TEST(FileSize, NineInTenSourceFilesStayUnder300Lines) {
  std::vector<SourceFile> files = read_source_tree(LOCKSTEP_SOURCE_DIR);
  ASSERT_FALSE(files.empty());
  std::vector<std::string> over;
  for (const SourceFile& file : files) {
    if (file.lines >= kUsual) over.push_back(file.path + ": " + std::to_string(file.lines));
  }
  EXPECT_LE(over.size() * 10, files.size()) << over.size() << " of " << files.size() << " files:\n"
                                            << join(over);
}

/// Folders that hold more source files than `most`, not counting the folders in them.
std::vector<std::string> crowded_folders(const std::vector<SourceFile>& files, int most) {
  std::map<std::string, int> counts;
  for (const SourceFile& file : files) ++counts[file.path.substr(0, file.path.rfind('/'))];
  std::vector<std::string> found;
  for (const auto& [folder, count] : counts) {
    if (count > most) found.push_back(folder + ": " + std::to_string(count) + " files");
  }
  return found;
}

TEST(FileSize, NoFolderHoldsMoreThan70SourceFiles) {
  const auto found = crowded_folders(read_source_tree(LOCKSTEP_SOURCE_DIR), 70);
  EXPECT_TRUE(found.empty()) << "divide these:\n" << join(found);
}

TEST(FileSize, ACrowdedFolderIsNamedWithItsCount) {
  const std::vector<SourceFile> files = {parse_source("core/a.h", ""), parse_source("core/b.h", ""),
                                         parse_source("core/ops/c.h", "")};
  EXPECT_EQ(crowded_folders(files, 1), std::vector<std::string>{"core: 2 files"});
  EXPECT_TRUE(crowded_folders(files, 2).empty());
}

TEST(FileSize, LinesAreCountedWithAndWithoutATrailingNewline) {
  EXPECT_EQ(parse_source("a.h", "").lines, 0);
  EXPECT_EQ(parse_source("a.h", "one\ntwo\n").lines, 2);
  EXPECT_EQ(parse_source("a.h", "one\n\nthree").lines, 3);
}

}  // namespace
}  // namespace lockstep::structure
