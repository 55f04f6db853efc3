#include "compile/graph/graph_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep::compiler {
namespace {

using testing::HasSubstr;

std::vector<NamedGraph> one_graph() {
  return {{"a \"small\" one", parse_graph(R"(graph(%0: float32[2, 3], %1: float32[3]) {
  fused {
    %2: float32[2, 3] = add.Tensor(%0, %1, 0.5)
    %3: float32[2, 3] = relu(%2)
  }
  %4: float32[2] = sum.dim_IntList(%3, [1], False, None)
  write %3 into %0
  return %4, None
}
)")}};
}

TEST(GraphExport, JsonHasAllOfAGraph) {
  const auto json = nlohmann::json::parse(to_json(one_graph()))[0];
  EXPECT_EQ(json["name"], "a \"small\" one");
  EXPECT_EQ(json["inputs"], nlohmann::json({0, 1}));
  EXPECT_EQ(json["values"].size(), 5U);
  EXPECT_EQ(json["values"][2]["dtype"], "float32");
  EXPECT_EQ(json["values"][2]["sizes"], nlohmann::json({2, 3}));
  EXPECT_EQ(json["values"][2]["strides"], nlohmann::json({3, 1}));
  EXPECT_EQ(json["values"][4]["device"], "cpu");
  ASSERT_EQ(json["nodes"].size(), 3U);
  EXPECT_EQ(json["nodes"][0]["op"], "add.Tensor");
  EXPECT_EQ(json["nodes"][0]["arguments"], nlohmann::json({"%0", "%1", "0.5"}));
  EXPECT_EQ(json["nodes"][0]["reads"], nlohmann::json({0, 1}));
  EXPECT_EQ(json["nodes"][0]["results"], nlohmann::json({2}));
  EXPECT_EQ(json["nodes"][1]["group"], json["nodes"][0]["group"]);
  EXPECT_TRUE(json["nodes"][2]["group"].is_null());
  EXPECT_EQ(json["outputs"], nlohmann::json({4, nullptr}));
  EXPECT_EQ(json["writes"], nlohmann::json::parse(R"([{"input": 0, "value": 3}])"));
}

TEST(GraphExport, DotHasABoxForEachCallAndAnArrowForEachRead) {
  const std::string dot = to_dot(one_graph());
  EXPECT_THAT(dot, HasSubstr("digraph compiled {"));
  EXPECT_THAT(dot, HasSubstr(R"(label="a \"small\" one")"));
  EXPECT_THAT(dot, HasSubstr(R"x(label="add.Tensor(%0, %1, 0.5)")x"));
  EXPECT_THAT(dot, HasSubstr(R"x(label="sum.dim_IntList(%3, [1], False)")x"));
  EXPECT_THAT(dot, HasSubstr(R"(g0i0 -> g0n0 [label="%0: float32[2, 3]"])"));
  EXPECT_THAT(dot, HasSubstr(R"(g0n0 -> g0n1 [label="%2: float32[2, 3]"])"));
  EXPECT_THAT(dot, HasSubstr(R"(g0n1 -> g0i0 [label="%3: float32[2, 3]", style=dotted])"));
  EXPECT_THAT(dot, HasSubstr(R"(g0n2 -> g0out [label="%4: float32[2]"])"));
  // The two calls of the loop stand in its frame, the third outside.
  const size_t frame = dot.find("one loop"), end = dot.find("    }\n", frame);
  EXPECT_LT(frame, dot.find("g0n0 ["));
  EXPECT_LT(dot.find("g0n1 ["), end);
  EXPECT_GT(dot.find("g0n2 ["), end);
}

TEST(GraphExport, SeveralGraphsAreOnePicture) {
  std::vector<NamedGraph> graphs = one_graph();
  graphs.push_back(graphs[0]);
  EXPECT_THAT(to_dot(graphs), HasSubstr("g1n0 -> g1n1"));
  EXPECT_EQ(nlohmann::json::parse(to_json(graphs)).size(), 2U);
}

}  // namespace
}  // namespace lockstep::compiler
