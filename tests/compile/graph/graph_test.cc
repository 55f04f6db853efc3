#include "compile/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/passes.h"
#include "core/dispatch/dispatcher.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::SizeIs;

const char* const kText = R"(graph(%0: float32[2, 3], %1: float32[3]) {
  %2: float32[2, 3] = add.Tensor(%0, %1, 1)
  %3: float32[3, 2] strides [1, 3] = t(%2)
  %4: float32[3] = sum.dim_IntList(%3, [1], False, None)
  %5: float32[2, 3], %6: int64[2, 3] = sort(%2, 1, True)
  %7: float32[2, 3] = clamp(%5, -0.5, None)
  %8: float32[5, 3] = cat([%2, %0, %1], 0)
  write %7 into %0
  return %4, %6, None
}
)";

TEST(GraphText, ReadsBackToTheSameText) { EXPECT_EQ(to_string(parse_graph(kText)), kText); }

TEST(GraphText, HoldsEveryKindOfConstant) {
  const std::string text = R"(graph(%0: float32[4]) {
  %1: float32[4] = gelu(%0, "tanh")
  %2: bfloat16[4] = _to_copy(%1, bfloat16, None, None, None, False, None)
  %3: float32[4] = add.Scalar(%1, 2, 0.1)
  %4: float32[4] = div.Tensor_mode(%3, %1, "fl\"oor")
  %5: float32[4] = nan_to_num(%4, nan, inf, -inf)
  %6: float64[4] on meta = clone(%5, format:1)
  return %6
}
)";
  EXPECT_EQ(to_string(parse_graph(text)), text);
}

TEST(GraphText, ErrorsNameTheLine) {
  const auto expect = [](std::string text, const std::string& from, const std::string& to,
                         const std::string& message) {
    text.replace(text.find(from), from.size(), to);
    expect_error<Error>([&] { parse_graph(text); }, message);
  };
  expect(kText, "add.Tensor", "add.Tensro", "line 2: expected an operator");
  expect(kText, "[1], False", "[1], Flase", "line 4: expected True or False, got \"Flase");
  expect(kText, "float32[3] = sum", "float33[3] = sum", "line 4: expected a dtype");
  expect(kText, "[%2, %0, %1], 0)", "[%2, %0, %1], 0, 1)", "line 7: expected no more arguments");
  expect(kText, "return", "retrun", "line 9");
  expect(kText, "}", "} x", "expected the end, got \"x\"");
}

TEST(GraphCheck, NamesWhatIsNotSound) {
  const Graph sound = parse_graph(kText);
  const auto expect = [&](const std::function<void(Graph&)>& damage, const std::string& message) {
    Graph graph = sound;
    damage(graph);
    expect_error<Error>([&] { check(graph); }, message);
  };
  expect([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }, "node 0 (t) reads %2");
  expect([](Graph& g) { g.nodes[1].results = {2}; }, "node 1 (t) defines %2 a second time");
  expect([](Graph& g) { g.nodes[1].results = {99}; }, "defines %99: expected one of 9 values");
  expect([](Graph& g) { g.nodes[0].arguments.pop_back(); }, "has 2 arguments: expected 3");
  expect([](Graph& g) { g.nodes[0].arguments[0] = {}; }, "argument self is no Tensor");
  expect([](Graph& g) { g.nodes[2].arguments[2].constant = Value("yes"); },
         "argument keepdim is no bool");
  expect([](Graph& g) { g.outputs[0] = 42; }, "the list of outputs reads %42");
  expect([](Graph& g) { g.writes[0].value = kAbsent; }, "a write reads %-1");
}

size_t nodes_behind(Graph (*pass)(Graph), const std::string& text) {
  const Graph graph = pass(parse_graph(text));
  check(graph);
  return graph.nodes.size();
}

TEST(RemoveDeadCode, LeavesOutWhatNothingReads) {
  const Graph graph = remove_dead_code(parse_graph(kText));
  ASSERT_THAT(graph.nodes, SizeIs(5));  // all but cat
  for (const Node& node : graph.nodes) EXPECT_NE(node.op->name(), "cat");
}

TEST(RemoveDeadCode, KeepsWhatDrawsRandomNumbers) {
  EXPECT_EQ(nodes_behind(remove_dead_code, R"(graph(%0: float32[4]) {
  %1: float32[4], %2: bool[4] = native_dropout(%0, 0.5, True)
  %3: float32[4] = neg(%0)
  return %0
})"),
            1u);
}

TEST(MergeCommonSubexpressions, ComputesEqualCallsOnce) {
  const Graph graph = merge_common_subexpressions(parse_graph(R"(graph(%0: float32[4]) {
  %1: float32[4] = neg(%0)
  %2: float32[4] = neg(%0)
  %3: float32[4] = exp(%1)
  %4: float32[4] = exp(%2)
  %5: float32[4] = add.Tensor(%3, %4, 1)
  %6: float32[4] = add.Tensor(%3, %4, 2)
  return %5, %6
})"));
  check(graph);
  EXPECT_THAT(graph.nodes, SizeIs(4));  // neg, exp, and two different sums
}

TEST(MergeCommonSubexpressions, KeepsOutputsAndTheirViewsApart) {
  EXPECT_EQ(nodes_behind(merge_common_subexpressions, R"(graph(%0: float32[2, 2]) {
  %1: float32[2, 2] = neg(%0)
  %2: float32[2, 2] = neg(%0)
  %3: float32[2, 2] strides [1, 2] = t(%2)
  return %1, %3
})"),
            3u);
}

TEST(MergeCommonSubexpressions, TellsNumbersApartThatPrintAlike) {
  Graph graph = parse_graph(R"(graph(%0: float32[4]) {
  %1: float32[4] = add.Scalar(%0, 1.0, 1)
  %2: float32[4] = add.Scalar(%0, 1, 1)
  %3: float32[4] = add.Scalar(%0, 1.0, 1)
  %4: float32[4] = cat([%1, %2, %3], 0)
  return %4
})");
  graph.nodes[2].arguments[1].constant = Value(Scalar(1.0 + 1e-15));
  EXPECT_THAT(merge_common_subexpressions(graph).nodes, SizeIs(4));
}

TEST(Passes, OneThatBreaksTheGraphIsNamed) {
  const Pass breaks{"breaks", [](Graph graph) {
                      graph.nodes.clear();
                      return graph;
                    }};
  expect_error<Error>([&] { run_passes(parse_graph(kText), {breaks}); },
                      "pass breaks is not sound");
}

TEST(Passes, SayWhatTheyDid) {
  std::vector<std::string> log;
  run_passes(parse_graph(kText), default_passes(), &log);
  EXPECT_EQ(log, (std::vector<std::string>{"remove_dead_code: 6 -> 5 nodes",
                                           "fuse_rows: 1 group of 3 nodes"}));
}

}  // namespace
}  // namespace lockstep::compiler
