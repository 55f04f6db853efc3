#include "core/base/files/text_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;

class TextFilesTest : public testing::Test {
 protected:
  TextFilesTest() {
    std::filesystem::create_directories(folder_ / "b/inner");
    std::filesystem::create_directories(folder_ / ".hidden");
    std::filesystem::create_directories(folder_ / "empty");
    for (const char* name : {"c.txt", "a.txt", "b/2.txt", "b/inner/1.txt", ".hidden/x", ".dot"}) {
      put_file(folder_ / name, name);
    }
  }
  std::vector<std::string> found(const std::string& pattern) const {
    std::vector<std::string> names;
    for (const auto& path : find_files((folder_ / pattern).string())) {
      names.push_back(path.lexically_relative(folder_.path()).string());
    }
    return names;
  }
  TemporaryDirectory folder_;
};

TEST_F(TextFilesTest, AFolderGivesItsFilesInOrderWithoutHiddenOnes) {
  EXPECT_THAT(found(""), ElementsAre("a.txt", "b/2.txt", "b/inner/1.txt", "c.txt"));
}

TEST_F(TextFilesTest, PatternsAreSorted) {
  EXPECT_THAT(found("*.txt"), ElementsAre("a.txt", "c.txt"));
  EXPECT_THAT(found("{c.txt,b}"), ElementsAre("b/2.txt", "b/inner/1.txt", "c.txt"));
  EXPECT_THAT(found("a.txt"), ElementsAre("a.txt"));
}

TEST_F(TextFilesTest, AFileWhoseNameLooksLikeAPatternIsItself) {
  put_file(folder_ / "[a].txt", "");
  EXPECT_THAT(found("[a].txt"), ElementsAre("[a].txt"));
}

TEST_F(TextFilesTest, NothingFoundIsSaid) {
  EXPECT_TRUE(says(message_of<DataError>([&] { found("gone"); }), "gone: No such file"));
  EXPECT_TRUE(says(message_of<DataError>([&] { found("*.bin"); }), "no file matches"));
  EXPECT_TRUE(says(message_of<DataError>([&] { found("empty"); }), "no file in this folder"));
}

}  // namespace
}  // namespace lockstep::train
