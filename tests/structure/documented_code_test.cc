// Every C++ block of docs/*.md is compiled by tests/docs. Those of adding_an_operator.md are parts
// of the sources, with which adding_an_operator_test.cc compares them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace lockstep::structure {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int blocks_in(const std::string& page) {
  int count = 0;
  for (size_t at = 0; (at = page.find("\n```cpp", at)) != page.npos; ++at) ++count;
  return count;
}

TEST(DocumentedCode, EveryBlockIsCompiled) {
  const fs::path root = LOCKSTEP_SOURCE_DIR;
  std::vector<std::string> missing;
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    const std::string page = entry.path().stem().string();
    if (page == "adding_an_operator") continue;
    const std::string source = text_of(root / "tests/docs" / (page + ".cc"));
    for (int number = 1; number <= blocks_in(text_of(entry.path())); ++number) {
      const std::string include = "#include \"" + page + "/" + std::to_string(number) + ".inc\"";
      if (source.find(include) == source.npos) missing.push_back(page + ": " + include);
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(DocumentedCode, ReadmeHasNone) {
  // It would have to be compiled as well: tests/docs/CMakeLists.txt looks into docs/ alone.
  EXPECT_EQ(blocks_in(text_of(fs::path(LOCKSTEP_SOURCE_DIR) / "README.md")), 0);
}

}  // namespace
}  // namespace lockstep::structure
