// Options are given by name: `{.average = true}`. Compilers warn about members that are left out
// then and have no initialiser, so every member of an options struct has one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;

/// Members without an initialiser of the structs in `header` whose names end as those of options.
/// Structs with constructors are no aggregates.
std::vector<std::string> without_initialiser(std::istream& header) {
  static const std::regex kStruct(R"(^struct (\w*(Options|Config))( final)?( : .*)? \{$)");
  static const std::regex kMember(R"(^  (\w[\w:<>,*& ]*|std::function<.*>) (\w+);.*$)");
  static const std::regex kOther(R"(^  (friend|using|static|return|explicit)\b.*$)");
  std::vector<std::string> found, members;
  std::string name;
  bool is_aggregate = true;
  for (std::string line; std::getline(header, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kStruct)) {
      name = match[1];
      members.clear();
      is_aggregate = true;
    } else if (line == "};") {
      if (is_aggregate) found.insert(found.end(), members.begin(), members.end());
      name.clear();
      members.clear();
    } else if (!name.empty()) {
      is_aggregate &= !line.starts_with("  " + name + "(");
      const bool is_member = std::regex_match(line, match, kMember);
      if (is_member && !std::regex_match(line, kOther))
        members.push_back(name + "::" + match[2].str());
    }
  }
  return found;
}

TEST(Options, EveryMemberHasAnInitialiser) {
  std::vector<std::string> found;
  for (const SourceFile& file : read_source_tree(LOCKSTEP_SOURCE_DIR)) {
    if (!is_header(file.path) || file.path.starts_with("tests/")) continue;
    std::ifstream header(std::string(LOCKSTEP_SOURCE_DIR) + "/" + file.path);
    for (const std::string& member : without_initialiser(header)) {
      found.push_back(file.path + ": " + member);
    }
  }
  EXPECT_TRUE(found.empty()) << "write `= {}` behind:\n" << join(found);
}

TEST(Options, WhatBreaksTheRuleIsNamed) {
  std::istringstream header(
      "struct AOptions {\n"
      "  int fine = 0;\n"
      "  std::vector<int> missing;  ///< of a kind\n"
      "  std::function<void(int)> call;\n"
      "  friend bool operator==(const AOptions&, const AOptions&) = default;\n"
      "};\n"
      "struct BOptions {\n"
      "  std::optional<int> set_by_constructor;\n"
      "  BOptions() = default;\n"
      "};\n"
      "struct Other {\n"
      "  int plain;\n"
      "};\n");
  EXPECT_THAT(without_initialiser(header), ElementsAre("AOptions::missing", "AOptions::call"));
}

}  // namespace
}  // namespace lockstep::structure
