// docs/adding_an_operator.md walks through the places of one operator. Its steps "**1. ...**" name
// a file each and quote the code that stands there; this test follows them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// One step of the page.
struct Step {
  std::string file;                 ///< the first word in backticks of its heading
  std::vector<std::string> quotes;  ///< its blocks of C++
};

/// Reads the steps of a page.
std::vector<Step> steps_of(const std::string& page) {
  static const std::regex heading(R"(^\*\*[0-9]+\. [^`]*`([^`]+)`)");
  std::vector<Step> steps;
  bool in_quote = false;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (std::smatch found; !in_quote && std::regex_search(line, found, heading)) {
      steps.push_back({.file = found[1], .quotes = {}});
    } else if (line.starts_with("```")) {
      in_quote = !in_quote && line == "```cpp" && !steps.empty();
      if (in_quote) steps.back().quotes.emplace_back();
    } else if (in_quote) {
      steps.back().quotes.back() += line + "\n";
    }
  }
  return steps;
}

/// The text with each run of white space as one space.
std::string folded(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\s+)"), " ");
}

/// "FILE: FIRST LINE" for each quote that does not stand in the file of its step.
template <class Read>
std::vector<std::string> wrong_quotes(const std::vector<Step>& steps, const Read& text_of) {
  std::vector<std::string> wrong;
  for (const Step& step : steps) {
    const std::string text = folded(text_of(step.file));
    for (const std::string& quote : step.quotes) {
      if (text.find(folded(quote)) != std::string::npos) continue;
      wrong.push_back(step.file + ": " + quote.substr(0, quote.find('\n')));
    }
  }
  return wrong;
}

bool is_library(const std::string& path) {
  static const std::set<std::string> layers = {"core",  "kernels",  "autograd", "compile",
                                               "dist",  "nn",       "data",     "configs",
                                               "train", "launcher", "profile"};
  return layers.contains(top_folder(path));
}

const std::vector<Step>& real_steps() {
  static const std::vector<Step> steps = steps_of(repository_text("docs/adding_an_operator.md"));
  return steps;
}

TEST(AddingAnOperator, TakesSixFilesAtMost) {
  EXPECT_THAT(real_steps(), SizeIs(6));
  for (const Step& step : real_steps()) EXPECT_THAT(step.quotes, Not(IsEmpty())) << step.file;
}

TEST(AddingAnOperator, TheQuotedCodeStandsInTheFilesOfItsSteps) {
  const auto wrong = wrong_quotes(real_steps(), repository_text);
  EXPECT_TRUE(wrong.empty()) << "docs/adding_an_operator.md quotes what is not there:\n"
                             << join(wrong);
}

TEST(AddingAnOperator, NoOtherFileOfTheLibraryNamesTheOperator) {
  // Another operator is logaddexp2.
  static const std::regex name("logaddexp(?!2)", std::regex::icase);
  std::set<std::string> named;
  for (const Step& step : real_steps()) {
    if (is_library(step.file)) named.insert(step.file);
  }
  std::set<std::string> found;
  for (const SourceFile& file : read_source_tree(LOCKSTEP_SOURCE_DIR)) {
    // These are written from the operators' declarations.
    if (file.path.starts_with("core/ops/forms/") || file.path.starts_with("core/tensor/methods/")) {
      continue;
    }
    if (!is_library(file.path)) continue;
    if (std::regex_search(repository_text(file.path), name)) found.insert(file.path);
  }
  EXPECT_EQ(found, named);
}

// The tests above pass on a page that is right; these show what they read, and that they fail on a
// wrong one.

TEST(AddingAnOperator, StepsAreReadWithTheirQuotes) {
  const auto steps = steps_of(
      "```cpp\nint before;\n```\n**1. Its block, `core/a.cc`**, beside `core/a.h`:\n"
      "```cpp\nint a = 1;\nint b = 2;\n```\n```\nnot C++\n```\n**2. A test, `tests/a.cc`**\n");
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].file, "core/a.cc");
  EXPECT_THAT(steps[0].quotes, ElementsAre("int a = 1;\nint b = 2;\n"));
  EXPECT_EQ(steps[1].file, "tests/a.cc");
  EXPECT_THAT(steps[1].quotes, IsEmpty());
}

TEST(AddingAnOperator, AQuoteThatIsNotThereIsNamed) {
  const std::vector<Step> steps = {
      {.file = "core/a.cc", .quotes = {"int a =\n    1;\n", "int b = 2;\nint c;\n"}}};
  EXPECT_THAT(wrong_quotes(steps, [](const std::string&) { return "int a = 1;\nint b = 3;\n"; }),
              ElementsAre("core/a.cc: int b = 2;"));
}

}  // namespace
}  // namespace lockstep::structure
