#include "dist/rendezvous/slurm_lists.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;

TEST(SlurmLists, TasksPerNodeAreRepeatedAsWritten) {
  EXPECT_THAT(parse_tasks_per_node("4(x2),3"), ElementsAre(4, 4, 3));
  EXPECT_THAT(parse_tasks_per_node("1"), ElementsAre(1));
}

TEST(SlurmLists, NodesAreWrittenOut) {
  EXPECT_THAT(parse_node_list("n[01-03,7]"), ElementsAre("n01", "n02", "n03", "n7"));
  EXPECT_THAT(parse_node_list("alpha,b-2,n[8-10]x"),
              ElementsAre("alpha", "b-2", "n8x", "n9x", "n10x"));
  EXPECT_THAT(parse_node_list("rack[0-1]n[1,3]"),
              ElementsAre("rack0n1", "rack0n3", "rack1n1", "rack1n3"));
}

TEST(SlurmLists, NamesLongerThanTheNameServiceHasAreRefused) {
  EXPECT_EQ(parse_node_list(std::string(255, 'n')).size(), 1U);
  std::string chain;
  for (int i = 0; i < 100'000; ++i) chain += "n[1]";
  // A million names as long as the rest of the list would take all memory.
  for (const std::string& text : {std::string(256, 'n'), "n[0-999999]" + std::string(300, 'x'),
                                  "n[" + std::string(300, '0') + "-9]", chain}) {
    expect_error<ConfigError>([&] { (void)parse_node_list(text); }, "a name is too long");
  }
}

/// Expects that the list is refused for `problem`.
void expect_list_refused(const std::string& text, const std::string& problem) {
  expect_error<ConfigError>([&] { (void)parse_node_list(text); },
                            "[slurm] \"" + text + "\" is no list of nodes: " + problem + ".");
}
void expect_tasks_refused(const std::string& text, const std::string& problem) {
  expect_error<ConfigError>(
      [&] { (void)parse_tasks_per_node(text); },
      "[slurm] \"" + text + "\" is no list of tasks per node: " + problem + ".");
}

TEST(SlurmLists, RefusalsSayWhatIsWrong) {
  expect_list_refused("", "an empty name");
  expect_list_refused("a,,b", "an empty name");
  for (const char* text : {"n[", "n]", "n[1", "n[1-2]]"}) {
    expect_list_refused(text, "brackets do not match");
  }
  for (const char* text : {"n[]", "n[3-1]", "n[a]", "n[1-]", "n[-1]"}) {
    expect_list_refused(text, "numbers and ascending ranges expected in []");
  }
  expect_tasks_refused("4(x2", "a closing bracket is missing");
  for (const char* text : {"", "x", "4(x)", "4(x0)", "-4", "4(2)", "1000001"}) {
    expect_tasks_refused(text, "numbers expected, such as 4(x2),3");
  }
  // Of a long text the beginning is shown.
  expect_error<ConfigError>([] { (void)parse_tasks_per_node(std::string(200, 'x')); },
                            "[slurm] \"" + std::string(100, 'x') + "\" is no list of tasks");
}

TEST(SlurmLists, HaveAMillionElementsAtMost) {
  EXPECT_EQ(parse_node_list("n[0-999999]").size(), 1'000'000u);
  EXPECT_EQ(parse_node_list("a[0-999]b[0-999]").size(), 1'000'000u);
  for (const char* text :
       {"n[0-1000000]", "n[0-999999,5]", "n[5,0-999999]", "a,n[0-999999]", "a[0-1000]b[0-999]"}) {
    expect_list_refused(text, "too many nodes");
  }
  EXPECT_EQ(parse_tasks_per_node("1000000(x1000000)").size(), 1'000'000u);
  EXPECT_EQ(parse_tasks_per_node("1(x999999),2").back(), 2);
  for (const char* text : {"1(x1000001)", "1,1(x1000000)"}) {
    expect_tasks_refused(text, "too many nodes");
  }
}

TEST(SlurmLists, MalformedTasksPerNodeAreRefused) {
  for (const char* text : {"", ",", "4,", "x", "4(x)", "4(x2", "4(x0)", "4(x-1)", "-4", "4(2)",
                           "4(x2)3", "4(x9999999)"}) {
    expect_error<ConfigError>([&] { (void)parse_tasks_per_node(text); }, "[slurm] ", text);
  }
}

TEST(SlurmLists, MalformedNodeListsAreRefused) {
  for (const char* text :
       {"", "n[", "n]", "n[1", "n[1-", "n[]", "n[3-1]", "n[a]", "n[1-2-3]", "n[1,,2]", "a,,b",
        "n[-1]", "n[[1]]", "n[0-9999999]", "a[0-9999]b[0-9999]", "n[0-4294967295]"}) {
    expect_error<ConfigError>([&] { (void)parse_node_list(text); }, "[slurm] ", text);
  }
}

RC_GTEST_PROP(SlurmListsProperty, TasksWrittenInRunsReadBack, ()) {
  const auto runs = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 200), rc::gen::inRange(1, 20))));
  std::string text;
  std::vector<int> expected;
  for (const auto& [tasks, times] : runs) {
    if (!text.empty()) text += ",";
    text += times == 1 ? std::to_string(tasks) : fmt::format("{}(x{})", tasks, times);
    expected.insert(expected.end(), static_cast<size_t>(times), tasks);
  }
  RC_ASSERT(parse_tasks_per_node(text) == expected);
}

RC_GTEST_PROP(SlurmListsProperty, RangesOfNodesReadBack, ()) {
  const auto ranges = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 1200), rc::gen::inRange(0, 12))));
  const int width = *rc::gen::inRange(1, 6);
  std::string text = "node[";
  std::vector<std::string> expected;
  for (const auto& [first, more] : ranges) {
    if (!expected.empty()) text += ",";
    text += fmt::format("{:0{}}", first, width);
    if (more > 0) text += fmt::format("-{}", first + more);
    const size_t digits = fmt::format("{:0{}}", first, width).size();
    for (int node = first; node <= first + more; ++node) {
      expected.push_back(fmt::format("node{:0{}}", node, digits));
    }
  }
  RC_ASSERT(parse_node_list(text + "]") == expected);
}

RC_GTEST_PROP(SlurmListsProperty, AnyTextIsReadOrRefused, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("n019[]-,x()")));
  try {
    RC_ASSERT(!parse_node_list(text).empty());
  } catch (const ConfigError&) {
  }
  try {
    RC_ASSERT(!parse_tasks_per_node(text).empty());
  } catch (const ConfigError&) {
  }
}

}  // namespace
}  // namespace lockstep::dist
