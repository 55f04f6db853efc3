// Checks the contract of include/headers.txt: the installed headers are complete, and none is
// installed without need.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;

const std::string kUmbrella = "include/lockstep/lockstep.h";

/// The list in include/headers.txt: `all` headers, and those of its first part, which the umbrella
/// header includes.
struct PublicHeaders {
  std::set<std::string> all;
  std::set<std::string> in_umbrella;
};

PublicHeaders parse_list(std::istream& in) {
  PublicHeaders headers;
  int part = 0;
  bool in_comment = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) {
      part += in_comment ? 0 : 1;
      in_comment = true;
      continue;
    }
    in_comment = false;
    if (line.empty()) continue;
    headers.all.insert(line);
    // Part 1 is the comment that opens the file; it lists no headers.
    if (part == 2) headers.in_umbrella.insert(line);
  }
  return headers;
}

PublicHeaders read_list() {
  std::ifstream in(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "include/headers.txt");
  return parse_list(in);
}

const SourceFile* find(const std::vector<SourceFile>& files, const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const SourceFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

/// Headers of ours that public headers include but that are not public themselves.
std::vector<std::string> missing_from(const PublicHeaders& list,
                                      const std::vector<SourceFile>& files) {
  std::vector<std::string> missing;
  for (const std::string& path : list.all) {
    const SourceFile* const file = find(files, path);
    if (file == nullptr) {
      missing.push_back(path + ": no such file");
      continue;
    }
    for (const Include& include : file->includes) {
      if (find(files, include.path) != nullptr && !list.all.contains(include.path)) {
        missing.push_back(include.path + ": included by " + path);
      }
    }
  }
  return missing;
}

/// Headers of operators, modules and models that are missing from the list. They are all public,
/// except helpers used only by the sources that define operators.
std::vector<std::string> forgotten_by(const PublicHeaders& list,
                                      const std::vector<SourceFile>& files) {
  std::vector<std::string> forgotten;
  for (const SourceFile& file : files) {
    const bool for_users = file.path.starts_with("core/ops/") || file.path.starts_with("nn/");
    if (!for_users || !is_header(file.path) || list.all.contains(file.path)) continue;
    // Only a header whose source of the same name defines operators counts; `_rules` and helpers do
    // not.
    const std::string source = file.path.substr(0, file.path.size() - 1) + "cc";
    const SourceFile* const found = find(files, source);
    if (found != nullptr && found->defines_operators) forgotten.push_back(file.path);
  }
  return forgotten;
}

/// Includes of `standard` headers by the headers that `root` reaches, as "a.h includes <b>".
std::vector<std::string> includes_of(const std::set<std::string>& standard, const std::string& root,
                                     const std::vector<SourceFile>& files) {
  std::vector<std::string> found;
  std::set<std::string> seen = {root};
  for (std::vector<std::string> left = {root}; !left.empty();) {
    const std::string path = left.back();
    left.pop_back();
    const SourceFile* const file = find(files, path);
    if (file == nullptr) continue;
    for (const Include& include : file->includes) {
      if (standard.contains(include.path))
        found.push_back(path + " includes <" + include.path + ">");
      if (seen.insert(include.path).second) left.push_back(include.path);
    }
  }
  return found;
}

TEST(PublicHeaders, TheyIncludeOnlyPublicHeaders) {
  const auto missing = missing_from(read_list(), read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(missing.empty()) << "not in include/headers.txt:\n" << join(missing);
}

TEST(PublicHeaders, TheUmbrellaIncludesTheFirstPartOfTheList) {
  const auto files = read_source_tree(LOCKSTEP_SOURCE_DIR);
  const SourceFile* const umbrella = find(files, kUmbrella);
  ASSERT_NE(umbrella, nullptr);
  std::set<std::string> included;
  for (const Include& include : umbrella->includes) included.insert(include.path);
  EXPECT_EQ(included, read_list().in_umbrella);
}

// A program that includes the umbrella header compiles in 320 MB; <filesystem> alone takes 27 MB.
TEST(PublicHeaders, TheUmbrellaLeavesDearStandardHeadersOut) {
  const std::set<std::string> dear = {"condition_variable",
                                      "deque",
                                      "filesystem",
                                      "fstream",
                                      "future",
                                      "iomanip",
                                      "iostream",
                                      "list",
                                      "locale",
                                      "queue",
                                      "random",
                                      "ranges",
                                      "regex",
                                      "set",
                                      "sstream",
                                      "thread"};
  const auto found = includes_of(dear, kUmbrella, read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(found.empty()) << join(found);
}

TEST(PublicHeaders, IncludesOfIncludedHeadersAreFound) {
  const std::vector<SourceFile> files = {
      parse_source("nn/a.h", "#include <vector>\n#include \"nn/b.h\"\n"),
      parse_source("nn/b.h", "#include <set>\n#include \"nn/a.h\"\n"),
      parse_source("nn/c.h", "#include <set>\n"),
  };
  EXPECT_THAT(includes_of({"set", "regex"}, "nn/a.h", files), ElementsAre("nn/b.h includes <set>"));
}

TEST(PublicHeaders, EveryHeaderOfOperatorsIsPublic) {
  const auto forgotten = forgotten_by(read_list(), read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(forgotten.empty()) << "not in include/headers.txt:\n" << join(forgotten);
}

TEST(PublicHeaders, WhatIsMissingIsNamed) {
  const std::vector<SourceFile> files = {
      parse_source("core/ops/fft/fft.h", "#include \"core/tensor/tensor.h\"\n#include <string>\n"),
      parse_source("core/ops/fft/fft.cc", "LS_OP(fft, Tensor(const Tensor&), \"fft\")\n"),
      parse_source("core/ops/fft/fft_rules.h", ""),
      parse_source("core/tensor/tensor.h", ""),
  };
  EXPECT_THAT(missing_from({{"core/ops/fft/fft.h", "nn/gone.h"}, {}}, files),
              ElementsAre("core/tensor/tensor.h: included by core/ops/fft/fft.h",
                          "nn/gone.h: no such file"));
  EXPECT_THAT(forgotten_by({{"core/tensor/tensor.h"}, {}}, files),
              ElementsAre("core/ops/fft/fft.h"));
}

}  // namespace
}  // namespace lockstep::structure
