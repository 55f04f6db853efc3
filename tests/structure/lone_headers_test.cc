// Every header compiles alone. A source with the same name proves it by including its header first;
// for headers without such a source the build compiles a file of one line (tests/CMakeLists.txt).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;

/// Sources that include another file before the header with their own name.
std::vector<std::string> sources_with_another_first(const std::vector<SourceFile>& files) {
  std::set<std::string> headers;
  for (const SourceFile& file : files) {
    if (is_header(file.path)) headers.insert(file.path);
  }
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    // Examples are separate projects with their own include style.
    if (!file.path.ends_with(".cc") || file.path.starts_with("examples/")) continue;
    const std::string own = file.path.substr(0, file.path.size() - 2) + "h";
    if (!headers.contains(own)) continue;
    if (file.includes.empty() || file.includes.front().path != own) found.push_back(file.path);
  }
  return found;
}

std::vector<std::string> unguarded(const std::vector<SourceFile>& files) {
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    if (is_header(file.path) && !file.guarded) found.push_back(file.path);
  }
  return found;
}

TEST(LoneHeaders, ASourceIncludesTheHeaderOfItsNameFirst) {
  const auto found = sources_with_another_first(read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(found.empty()) << join(found);
}

TEST(LoneHeaders, EveryHeaderIsGuarded) {
  const auto found = unguarded(read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(found.empty()) << "without #pragma once:\n" << join(found);
}

TEST(LoneHeaders, WhatBreaksTheRulesIsNamed) {
  const std::vector<SourceFile> files = {
      parse_source("core/a.h", "#pragma once\n"),
      parse_source("core/a.cc", "#include <string>\n#include \"core/a.h\"\n"),
      parse_source("core/b.h", "struct B {};\n"),
      parse_source("core/b.cc", "#include \"core/b.h\"\n#include <string>\n"),
      parse_source("core/main.cc", ""),
  };
  EXPECT_THAT(sources_with_another_first(files), ElementsAre("core/a.cc"));
  EXPECT_THAT(unguarded(files), ElementsAre("core/b.h"));
}

}  // namespace
}  // namespace lockstep::structure
