#include "compile/recomputation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "compile/program.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMiB = int64_t{1} << 20;

std::vector<std::string> called(const std::vector<Node>& nodes) {
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.op->name());
  return names;
}

TEST(Recomputation, AWholeBudgetKeepsWhatIsNeeded) {
  const Graph forward = parse_graph(R"(graph(%0: float32[262144]) {
  %1: float32[262144] = tanh(%0)
  %2: float32[262144] = neg(%1)
  %3: float32[262144] = exp(%2)
  return %3
})");
  const Recomputation chosen = choose_recomputed(forward, {1, 2}, {}, 1);
  EXPECT_THAT(chosen.kept, ElementsAre(1, 2));
  EXPECT_THAT(chosen.nodes, IsEmpty());
  EXPECT_EQ(chosen.bytes, 2 * kMiB);
  EXPECT_EQ(chosen.bytes_of_needed, 2 * kMiB);
}

TEST(Recomputation, ConstantsAreMadeInBackwardWhateverTheBudget) {
  const Graph forward = parse_graph(R"(graph(%0: float32[4]) {
  %1: int64[4] = arange(4, None, None, None, None)
  %2: int64[4] = mul.Scalar(%1, 3)
  %3: float32[4] = mul.Tensor(%0, %2)
  return %3
})");
  const Recomputation chosen = choose_recomputed(forward, {0, 2}, {}, 1);
  EXPECT_THAT(chosen.kept, ElementsAre(0));
  EXPECT_THAT(called(chosen.nodes), ElementsAre("arange", "mul.Scalar"));
}

TEST(Recomputation, AChainIsComputedAgainFromOneOfItsValues) {
  const Graph forward = parse_graph(R"(graph(%0: float32[262144]) {
  %1: float32[262144] = tanh(%0)
  %2: float32[262144] = neg(%1)
  %3: float32[262144] = exp(%2)
  %4: float32[262144] = relu(%3)
  return %4
})");
  const Recomputation chosen = choose_recomputed(forward, {1, 2, 3}, {}, 0.4);
  // From %1 two calls are to be made, from %0 three.
  EXPECT_THAT(chosen.kept, ElementsAre(1));
  EXPECT_THAT(called(chosen.nodes), ElementsAre("neg", "exp"));
  EXPECT_EQ(chosen.bytes, kMiB);
}

TEST(Recomputation, InputsThatLiveOnCostNothing) {
  const Graph forward = parse_graph(R"(graph(%0: float32[262144]) {
  %1: float32[262144] = tanh(%0)
  %2: float32[262144] = neg(%1)
  return %2
})");
  const Recomputation chosen = choose_recomputed(forward, {1}, {0}, 0);
  EXPECT_THAT(chosen.kept, ElementsAre(0));
  EXPECT_THAT(called(chosen.nodes), ElementsAre("tanh"));
  EXPECT_EQ(chosen.bytes, 0);
}

TEST(Recomputation, KeepsWhatTakesLongToComputeAgain) {
  const Graph forward = parse_graph(R"(graph(%0: float32[512, 512], %1: float32[512, 512]) {
  %2: float32[512, 512] = mm(%0, %1)
  %3: float32[512, 512] = add.Scalar(%0, 1, 1)
  %4: float32[512, 512] = mul.Tensor(%2, %3)
  return %4
})");
  const Recomputation chosen = choose_recomputed(forward, {2, 3}, {0, 1}, 0.5);
  EXPECT_THAT(chosen.kept, ElementsAre(0, 2));
  EXPECT_THAT(called(chosen.nodes), ElementsAre("add.Scalar"));
}

TEST(Recomputation, KeepsMoreThanTheNextCutWhereTheBudgetAllowsIt) {
  // Equal branches fall out of the cut at one price; half of them fit.
  const Graph forward = parse_graph(R"(graph(%0: float32[262144]) {
  %1: float32[262144] = tanh(%0)
  %2: float32[262144] = tanh(%0)
  %3: float32[262144] = tanh(%0)
  %4: float32[262144] = tanh(%0)
  %5: float32[262144] = cat([%1, %2, %3, %4], 0)
  return %5
})");
  const Recomputation chosen = choose_recomputed(forward, {1, 2, 3, 4}, {0}, 0.5);
  EXPECT_EQ(chosen.bytes, 2 * kMiB);
  EXPECT_EQ(chosen.nodes.size(), 2U);
}

TEST(Recomputation, WhatIsDrawnIsKept) {
  const Graph forward = parse_graph(R"(graph(%0: float32[262144]) {
  %1: float32[262144] = bernoulli(%0, None)
  %2: float32[262144] = neg(%1)
  %3: float32[262144] = mul.Tensor(%0, %2)
  return %3
})");
  const Recomputation chosen = choose_recomputed(forward, {1, 2}, {0}, 0);
  EXPECT_THAT(chosen.kept, ElementsAre(1));
  EXPECT_THAT(called(chosen.nodes), ElementsAre("neg"));
}

TEST(Recomputation, ViewsAreTakenAnewOfTheirMemory) {
  const Graph forward = parse_graph(R"(graph(%0: float32[512, 512]) {
  %1: float32[512, 512] = tanh(%0)
  %2: float32[512, 256] = slice.Tensor(%1, 1, 0, 256, 1)
  %3: float32[512, 256] = slice.Tensor(%1, 1, 256, 512, 1)
  %4: float32[512, 256] = mul.Tensor(%2, %3)
  return %4
})");
  // Half a tensor kept is the whole of its memory.
  const Recomputation chosen = choose_recomputed(forward, {2, 3}, {}, 0.9);
  EXPECT_EQ(chosen.bytes_of_needed, kMiB);
  EXPECT_EQ(chosen.bytes, kMiB);
}

TEST(Recomputation, InputsThatForwardChangesAreNotReadAgain) {
  Graph forward = parse_graph(R"(graph(%0: float32[262144], %1: float32[262144]) {
  %2: float32[262144] = tanh(%1)
  %3: float32[262144] = mul.Tensor(%0, %2)
  %4: float32[262144] = add.Scalar(%1, 1, 1)
  return %3
})");
  forward.writes.push_back({1, 4});
  const Recomputation chosen = choose_recomputed(forward, {2}, {0, 1}, 0);
  EXPECT_THAT(chosen.kept, ElementsAre(2));
  EXPECT_THAT(chosen.nodes, IsEmpty());
}

TEST(Recomputation, OutputsAreNotKeptForTheirElements) {
  const Graph forward = parse_graph(R"(graph(%0: float32[262144]) {
  %1: float32[262144] = tanh(%0)
  %2: float32[262144] = neg(%1)
  return %1
})");
  // %1 is nearer, but the caller may change it.
  EXPECT_THAT(choose_recomputed(forward, {2}, {}, 0.5).kept, ElementsAre(2));
  EXPECT_THAT(choose_recomputed(forward, {2}, {0}, 0.5).kept, ElementsAre(0));
}

TEST(Recomputation, PartsOfFusedOperatorsAreMadeByLess) {
  const Graph forward = parse_graph(R"(graph(%0: float32[512, 512], %1: float32[512, 512]) {
  %2: float32[512, 512], %3: float32[512, 512] = linear_gelu(%0, %1, None)
  %4: float32[512, 512] = mul.Tensor(%2, %3)
  return %4
})");
  const Recomputation half = choose_recomputed(forward, {2, 3}, {0, 1}, 0.5);
  EXPECT_THAT(half.kept, ElementsAre(3));
  EXPECT_THAT(called(half.nodes), ElementsAre("gelu"));
  // The product gives both.
  const Recomputation none = choose_recomputed(forward, {2, 3}, {0, 1}, 0);
  EXPECT_THAT(none.kept, ElementsAre(0, 1));
  EXPECT_THAT(called(none.nodes), ElementsAre("linear_gelu"));
}

TEST(Recomputation, NodesAreCalledBeforeTheirFirstReader) {
  const Graph whole = parse_graph(R"(graph(%0: float32[4], %1: float32[4]) {
  %2: float32[4] = tanh(%0)
  %3: float32[4] = neg(%2)
  %4: float32[4] = exp(%0)
  %5: float32[4] = mul.Tensor(%1, %4)
  %6: float32[4] = mul.Tensor(%5, %3)
  return %6, %2
})");
  Graph backward = whole;
  backward.nodes = with_recomputed({whole.nodes[0], whole.nodes[1], whole.nodes[2]},
                                   {whole.nodes[3], whole.nodes[4]}, {6, 2});
  check(backward);
  EXPECT_THAT(called(backward.nodes),
              ElementsAre("exp", "mul.Tensor", "tanh", "neg", "mul.Tensor"));
}

TEST(Recomputation, WhatTheDerivativeReturnsIsCalledWithoutAReader) {
  const Graph whole = parse_graph(R"(graph(%0: float32[4]) {
  %1: float32[4] = tanh(%0)
  %2: float32[4] = neg(%1)
  %3: float32[4] = exp(%0)
  return %3, %2
})");
  const std::vector<Node> nodes =
      with_recomputed({whole.nodes[0], whole.nodes[1]}, {whole.nodes[2]}, {3, 2, kAbsent});
  EXPECT_THAT(called(nodes), ElementsAre("exp", "tanh", "neg"));
}

/// Twice a product and something cheap.
Tensor feed(const Tensor& x, const Tensor& weight) {
  Tensor y = x;
  for (int i = 0; i < 2; ++i) y = tanh(y.mm(weight)).mul(y).exp();
  return y;
}

TEST(CompileOptions, ABudgetOfActivationsKeepsLessAndTheBits) {
  const Tensor weight = randn({64, 64}).mul(0.01).set_requires_grad();
  const Tensor x = randn({32, 64}).set_requires_grad();
  const std::vector<Tensor> want = grad({feed(x, weight).sum()}, {x, weight});
  size_t kept_before = 100;
  for (const double budget : {1.0, 0.5, 0.0}) {
    CompileOptions options;
    options.activation_budget = budget;
    const CompiledTensorFunction compiled =
        compile([&](const Tensor& input) { return feed(input, weight); }, options);
    for (int call = 0; call < 2; ++call) {
      const std::vector<Tensor> got = grad({compiled(x).sum()}, {x, weight});
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(equal(got[i], want[i])) << budget;
    }
    const size_t kept = compiled.programs().at(0)->forward().outputs.size();
    EXPECT_LT(kept, kept_before);
    kept_before = kept;
  }
}

TEST(CompileOptions, ABudgetIsAShare) {
  CompileOptions options;
  options.activation_budget = 1.5;
  expect_error<Error>([&] { compile([](const Tensor& x) { return x.neg(); }, options); },
                      "activation_budget: expected 0 to 1, got 1.5");
}

TEST(CompileOptions, AnArgumentThatWasChangedCannotBeComputedFrom) {
  CompileOptions options;
  options.activation_budget = 0.5;
  const CompiledTensorFunction compiled =
      compile([](const Tensor& x) { return x.add(1).tanh().mul(x.sub(1).exp()); }, options);
  const Tensor leaf = ones({8}).set_requires_grad();
  for (int call = 0; call < 2; ++call) {
    const Tensor x = leaf.mul(2);
    const Tensor y = compiled(x).sum();
    x.add_(1);
    if (call == 0) continue;  // recorded, as it is
    EXPECT_THROW(grad({y}, {leaf}), AutogradError);
  }
}

}  // namespace
}  // namespace lockstep::compiler
