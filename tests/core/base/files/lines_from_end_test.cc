#include "core/base/files/lines_from_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using train::TemporaryDirectory;

class LinesFromEndTest : public testing::Test {
 protected:
  std::filesystem::path file_of(const std::string& text) {
    const std::filesystem::path path = folder_ / "lines";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::vector<std::string> all(const std::filesystem::path& path) {
    std::vector<std::string> found;
    LinesFromEnd lines(path);
    while (const auto line = lines.next()) found.push_back(*line);
    return found;
  }

  TemporaryDirectory folder_;
};

TEST_F(LinesFromEndTest, TheLastComesFirst) {
  EXPECT_THAT(all(file_of("one\ntwo\n\nthree\n")), ElementsAre("three", "", "two", "one"));
  EXPECT_THAT(all(file_of("\n")), ElementsAre(""));
  EXPECT_THAT(all(file_of("")), IsEmpty());
}

TEST_F(LinesFromEndTest, OneThatIsBeingWrittenIsTold) {
  LinesFromEnd lines(file_of("whole\npart"));
  EXPECT_EQ(lines.next(), "part");
  EXPECT_FALSE(lines.was_whole());
  EXPECT_EQ(lines.next(), "whole");
  EXPECT_TRUE(lines.was_whole());
  EXPECT_EQ(lines.next(), std::nullopt);
}

TEST_F(LinesFromEndTest, WhatIsWrittenLaterIsNotRead) {
  const auto path = file_of("one\n");
  LinesFromEnd lines(path);
  std::ofstream(path, std::ios::app) << "two\n";
  EXPECT_EQ(lines.next(), "one");
  EXPECT_EQ(lines.next(), std::nullopt);
}

TEST_F(LinesFromEndTest, AFileThatIsMissingIsAnError) {
  EXPECT_THROW(LinesFromEnd(folder_ / "none"), FileError);
}

TEST_F(LinesFromEndTest, OneThatIsCutOffMeanwhileIsAnError) {
  const auto path = file_of(std::string(200'000, 'x') + "\nlast\n");
  LinesFromEnd lines(path);
  EXPECT_EQ(lines.next(), "last");
  std::filesystem::resize_file(path, 10);
  EXPECT_THROW((void)lines.next(), FileError);
}

RC_GTEST_FIXTURE_PROP(LinesFromEndTest, AreThoseOfTheFileWhateverTheirLengths, ()) {
  std::vector<std::string> lines;
  std::string text;
  for (const int length : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 90'000))) {
    lines.emplace_back(static_cast<size_t>(length % 7 == 0 ? length : length % 50), 'a');
    text += lines.back() + "\n";
  }
  std::ranges::reverse(lines);
  RC_ASSERT(all(file_of(text)) == lines);
}

}  // namespace
}  // namespace lockstep
