#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "compile/passes.h"
#include "compile/program.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/subscript.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of_once(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.runs_once) names.push_back(node.op->name());
  }
  return names;
}

std::vector<std::string> operator_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.op->name());
  return names;
}

TEST(FoldConstants, WhatDependsOnConstantsAloneRunsOnce) {
  const Graph graph = fold_constants(parse_graph(R"(graph(%0: int64[4]) {
  %1: int64[4] = arange(4, None, None, None, None)
  %2: int64[4] = mul.Scalar(%1, 3)
  %3: int64[4] = add.Tensor(%0, %2, 1)
  %4: int64[2, 2] = view(%2, [2, 2])
  %5: int64[4] = neg(%1)
  %6: int64[4] = mul.Tensor(%3, %5)
  return %6, %4
})"));
  check(graph);
  // The caller may change %4, and so what lies in the memory of %2.
  EXPECT_THAT(names_of_once(graph), ElementsAre("arange", "neg"));
}

TEST(FoldConstants, RandomNumbersAndMemoryAloneAreNoConstants) {
  const Graph graph = fold_constants(parse_graph(R"(graph(%0: float32[4]) {
  %1: float32[4] = empty.memory_format([4], float32, None, None, None, None)
  %2: float32[4] = uniform(%1, 0.0, 1.0, None)
  %3: float32[4] = add.Tensor(%0, %2, 1)
  %4: float32[4] = empty.memory_format([4], float32, None, None, None, None)
  %5: float32[4] = fill.Scalar(%4, 2)
  %6: float32[4] = mul.Tensor(%3, %5)
  return %6
})"));
  check(graph);
  EXPECT_THAT(names_of_once(graph), ElementsAre("empty.memory_format", "fill.Scalar"));
}

TEST(FoldConstants, LargeResultsAreComputedAnew) {
  const Graph graph = fold_constants(parse_graph(R"(graph(%0: int64[3000000]) {
  %1: int64[3000000] = arange(3000000, None, None, None, None)
  %2: int64[3000000] = add.Tensor(%0, %1, 1)
  %3: int64[3000000] = neg(%1)
  %4: int64[] = sum(%3, None)
  %5: int64[3000000] = add.Tensor(%2, %4, 1)
  return %5
})"));
  EXPECT_THAT(names_of_once(graph), ElementsAre());
}

TEST(FoldConstants, TextAndCheckKnowThem) {
  const std::string text = R"(graph(%0: int64[4]) {
  once %1: int64[4] = arange(4, None, None, None, None)
  %2: int64[4] = add.Tensor(%0, %1, 1)
  return %2
}
)";
  EXPECT_EQ(to_string(parse_graph(text)), text);
  Graph graph = parse_graph(text);
  graph.nodes[1].runs_once = true;
  expect_error<Error>([&] { check(graph); }, "node 1 (add.Tensor) cannot run once");
  graph.nodes[1].runs_once = false;
  graph.outputs = {1};
  expect_error<Error>([&] { check(graph); }, "output %1 is made by a node that runs once");
}

TEST(FoldConstants, CallsGiveTheBitsOfTheFunction) {
  const auto body = [](const Tensor& x) {
    const Tensor rows = arange(40).unsqueeze(1), columns = arange(40);
    const Tensor later = columns.gt(rows);
    const Tensor scores = where(later, full({}, -std::numeric_limits<float>::infinity()), x.mul(2));
    const Tensor ramp = arange(40, DType::kF32).div(40);
    ramp[3] = 7;
    return scores.softmax(-1).mul(ramp).add(zeros({40}).add_(1));
  };
  const CompiledTensorFunction compiled = compile(body);
  for (int call = 0; call < 3; ++call) {
    const Tensor x = randn({40, 40}).set_requires_grad(call > 0);
    const Tensor got = compiled(x), want = body(x);
    EXPECT_TRUE(equal(got, want));
    if (call == 0) continue;
    EXPECT_TRUE(equal(grad({got.sum()}, {x})[0], grad({want.sum()}, {x})[0]));
  }
  EXPECT_EQ(compiled.counts().replayed, 1);
  EXPECT_GE(names_of_once(compiled.programs()[0]->forward()).size(), 4u);
}

TEST(FoldConstants, AResultMayBeChangedByTheCaller) {
  const CompiledTensorFunction compiled = compile(
      [](const Tensor& x) { return x.sum().gt(100).to(DType::kF32).add(zeros({3}).add(1)); });
  const CompiledTensorFunction alone = compile([](const Tensor&) { return arange(3).mul(2); });
  for (int call = 0; call < 3; ++call) {
    const Tensor a = compiled(ones({2})), b = alone(ones({2}));
    EXPECT_TRUE(equal(a, ones({3})));
    EXPECT_TRUE(equal(b, arange(3).mul(2)));
    a.zero_(), b.zero_();
  }
}

TEST(RemoveCasts, ThereAndBackFallAwayWhereNoBitCanChange) {
  const auto left_of = [](const std::string& first, const std::string& wide) {
    const std::string cast = "None, None, None, False, None)\n";
    return operator_names(remove_dead_code(remove_casts(parse_graph(
        "graph(%0: " + first + "[4], %9: " + first + "[4]) {\n  %1: " + wide +
        "[4] = _to_copy(%0, " + wide + ", " + cast + "  %2: " + first + "[4] = _to_copy(%1, " +
        first + ", " + cast + "  %3: " + first + "[4] = maximum(%2, %9)\n  return %3\n}"))));
  };
  for (const auto& [first, wide] :
       std::vector<std::pair<std::string, std::string>>{{"int32", "int64"},
                                                        {"int32", "float64"},
                                                        {"uint8", "bfloat16"},
                                                        {"int16", "float32"},
                                                        {"bool", "float32"}}) {
    EXPECT_THAT(left_of(first, wide), ElementsAre("maximum")) << first << " " << wide;
  }
  for (const auto& [first, wide] :
       std::vector<std::pair<std::string, std::string>>{{"int64", "float64"},
                                                        {"int32", "float32"},
                                                        {"float32", "bfloat16"},
                                                        {"bfloat16", "float32"}}) {
    EXPECT_THAT(left_of(first, wide), ElementsAre("_to_copy", "_to_copy", "maximum"))
        << first << " " << wide;
  }
}

TEST(RemoveCasts, RoundedFloatsStayAsTheyAre) {
  const Graph graph = remove_dead_code(remove_casts(parse_graph(R"(graph(%0: float32[4]) {
  %1: bfloat16[4] = _to_copy(%0, bfloat16, None, None, None, False, None)
  %2: float32[4] = _to_copy(%1, float32, None, None, None, False, None)
  %3: bfloat16[4] = _to_copy(%2, bfloat16, None, None, None, False, None)
  %4: bfloat16[4] = neg(%3)
  %5: bfloat16[4] = _to_copy(%2, bfloat16, None, None, None, False, None)
  return %4, %5
})")));
  check(graph);
  // What the caller gets is a tensor of its own.
  EXPECT_THAT(operator_names(graph), ElementsAre("_to_copy", "_to_copy", "neg", "_to_copy"));
  EXPECT_EQ(graph.nodes[2].arguments[0].values[0], 1);
}

TEST(RemoveCasts, AllBf16NumbersAreRoundedToThemselves) {
  const Tensor bits = arange(65536, DType::kI32).to(DType::kI16);
  const Tensor values = bits.view(DType::kBF16).to(DType::kF32);
  for (const DType narrow : {DType::kBF16, DType::kF16}) {
    const Tensor rounded = values.to(narrow);
    const Tensor again = rounded.to(DType::kF32).to(narrow);
    EXPECT_EQ(std::memcmp(rounded.data(), again.data(), rounded.nbytes()), 0);
    const Tensor product = rounded.mul(rounded).sub(rounded);
    const Tensor back = product.to(DType::kF32).to(narrow);
    EXPECT_EQ(std::memcmp(product.data(), back.data(), product.nbytes()), 0);
  }
}

TEST(RunPasses, SayWhatTheyDid) {
  std::vector<std::string> log;
  (void)run_passes(parse_graph(R"(graph(%0: float32[9, 5]) {
  %1: float32[5] = arange(5, float32, None, None, None)
  %2: float32[9, 5] = add.Tensor(%0, %1, 1)
  %3: float32[9, 5] = exp(%2)
  %4: float32[9, 5] = sin(%2)
  return %3
})"),
                   default_passes(), &log);
  EXPECT_THAT(log, ElementsAre("remove_dead_code: 4 -> 3 nodes", "fold_constants: 1 run once",
                               "fuse_pointwise: 1 group of 2 nodes"));
}

}  // namespace
}  // namespace lockstep::compiler
