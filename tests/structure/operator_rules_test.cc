// The shape rule of an operator stands in the file of its block, above it, unless blocks of several
// files share the rule.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Names of the rules in the blocks of a source: "mm" for `.structured(rules::mm)`.
std::set<std::string> rules_named_in(const std::string& text) {
  static const std::regex named(R"(\.structured\(\s*rules::(\w+))");
  std::set<std::string> names;
  for (std::sregex_iterator match(text.begin(), text.end(), named), end; match != end; ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

bool defines_rule(const std::string& text, const std::string& name) {
  return text.find("\nOutputs " + name + "(") != std::string::npos;
}

/// "PATH: NAME" for each rule that one source names and does not define.
std::vector<std::string> distant_rules(const std::map<std::string, std::string>& sources) {
  std::map<std::string, std::vector<std::string>> users;
  for (const auto& [path, text] : sources) {
    for (const std::string& name : rules_named_in(text)) users[name].push_back(path);
  }
  std::vector<std::string> distant;
  for (const auto& [name, paths] : users) {
    if (paths.size() > 1 || defines_rule(sources.at(paths.front()), name)) continue;
    distant.push_back(paths.front() + ": " + name);
  }
  return distant;
}

TEST(OperatorRules, StandInTheFilesOfTheirBlocks) {
  std::map<std::string, std::string> sources;
  for (const SourceFile& file : read_source_tree(LOCKSTEP_SOURCE_DIR)) {
    if (file.path.starts_with("core/ops/") && file.defines_operators) {
      sources[file.path] = repository_text(file.path);
    }
  }
  ASSERT_FALSE(sources.empty());
  const auto distant = distant_rules(sources);
  EXPECT_TRUE(distant.empty()) << "rules of one file that stand in another:\n" << join(distant);
}

TEST(OperatorRules, ARuleInAnotherFileIsNamed) {
  const std::string block = "LS_OP(mm, Tensor(const Tensor&), \"mm\").structured(rules::mm);\n";
  EXPECT_THAT(distant_rules({{"core/ops/a.cc", block}}), ElementsAre("core/ops/a.cc: mm"));
  EXPECT_THAT(distant_rules({{"core/ops/a.cc", "\nOutputs mm(const Tensor&) {}\n" + block}}),
              IsEmpty());
  EXPECT_THAT(distant_rules({{"core/ops/a.cc", block}, {"core/ops/b.cc", block}}), IsEmpty());
}

}  // namespace
}  // namespace lockstep::structure
