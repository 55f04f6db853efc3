#include "compile/decompose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/compile.h"
#include "compile/graph/graph.h"
#include "compile/interpreter.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> operators_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.op->name());
  return names;
}

/// x sigmoid(x), as silu is defined.
Decomposition of_silu() {
  return {"silu", [](std::span<const Value> arguments) {
            const Tensor& x = arguments[0].tensor();
            return std::vector<Tensor>{x * sigmoid(x)};
          }};
}

Graph written_out(std::vector<Decomposition> table, std::string_view text) {
  Graph graph = decompose(std::move(table)).run(parse_graph(text));
  check(graph);
  return graph;
}

TEST(Decompose, WritesCallsOutWithTheTypesOfTheGraph) {
  const Graph graph = written_out({of_silu()}, R"(graph(%0: bfloat16[4, 8]) {
  %1: bfloat16[4, 8] = exp(%0)
  %2: bfloat16[4, 8] = silu(%1)
  %3: bfloat16[4, 8] = neg(%2)
  return %3
})");
  EXPECT_THAT(operators_of(graph), ElementsAre("exp", "sigmoid", "mul.Tensor", "neg"));
  EXPECT_EQ(to_string(graph), R"(graph(%0: bfloat16[4, 8]) {
  %1: bfloat16[4, 8] = exp(%0)
  %4: bfloat16[4, 8] = sigmoid(%1)
  %2: bfloat16[4, 8] = mul.Tensor(%1, %4)
  %3: bfloat16[4, 8] = neg(%2)
  return %3
}
)");
}

TEST(Decompose, GivesListsConstantsAndSeveralResults) {
  const Decomposition of_split{"split.Tensor", [](std::span<const Value> arguments) {
                                 const Tensor& x = arguments[0].tensor();
                                 const int64_t size = arguments[1].to_int();
                                 std::vector<Tensor> parts;
                                 for (int64_t i = 0; i < x.size(0); i += size) {
                                   parts.push_back(x.narrow(0, i, size));
                                 }
                                 return parts;
                               }};
  const Graph graph = written_out({of_split}, R"(graph(%0: float32[4, 2]) {
  %1: float32[2, 2], %2: float32[2, 2] = split.Tensor(%0, 2, 0)
  %3: float32[4, 2] = cat([%2, %1], 0)
  return %3
})");
  EXPECT_THAT(operators_of(graph), ElementsAre("slice.Tensor", "slice.Tensor", "cat"));
  const Tensor x = arange(8).to(DType::kF32).view({4, 2});
  EXPECT_TRUE(equal(Interpreter(graph).run({x})[0], cat({x.narrow(0, 2, 2), x.narrow(0, 0, 2)})));
}

TEST(Decompose, LeavesCallsWhoseBodyGivesSomethingElse) {
  constexpr std::string_view kText = R"(graph(%0: float32[4]) {
  %1: float32[4] = silu(%0)
  return %1
}
)";
  const Tensor other = ones({4});
  using Arguments = std::span<const Value>;
  const std::vector<std::pair<const char*, Decomposition>> bodies = {
      {"another dtype",
       {"silu", [](Arguments in) { return std::vector<Tensor>{in[0].tensor().to(DType::kF64)}; }}},
      {"another shape",
       {"silu", [](Arguments in) { return std::vector<Tensor>{in[0].tensor().sum()}; }}},
      {"an argument", {"silu", [](Arguments in) { return std::vector<Tensor>{in[0].tensor()}; }}},
      {"no result", {"silu", [](Arguments) { return std::vector<Tensor>{}; }}},
      {"it changes an argument",
       {"silu", [](Arguments in) { return std::vector<Tensor>{mul_(in[0].tensor(), 2).neg()}; }}},
      {"it reads another tensor",
       {"silu",
        [&](Arguments in) { return std::vector<Tensor>{add(in[0].tensor(), other.to(kMeta))}; }}}};
  for (const auto& [what, body] : bodies) {
    EXPECT_EQ(to_string(written_out({body}, kText)), kText) << what;
  }
  // The operator itself is no recursion.
  const Decomposition again{
      "silu", [](Arguments in) { return std::vector<Tensor>{silu(neg(in[0].tensor()))}; }};
  EXPECT_THAT(operators_of(written_out({again}, kText)), ElementsAre("neg", "silu"));
}

TEST(Decompose, OfAnOperatorThatHasNoBodyThrows) {
  expect_error<DispatchError>([] { (void)decompose({{"no_such_operator"}}); }, "no_such_operator");
  expect_error<Error>([] { (void)decompose({{"silu"}}); }, "silu is no composite",
                      "expected a body");
}

TEST(Decompose, IsAPassOfACompiledFunctionAndItsDerivative) {
  manual_seed(3);
  CompileOptions options;
  options.passes.insert(options.passes.begin(), decompose({of_silu()}));
  options.kernels = KernelBuild::kNever;
  const CompiledTensorFunction compiled =
      compile([](const Tensor& x) { return silu(x).mul(2); }, options);
  const Tensor x = randn({64, 32}).set_requires_grad();
  (void)compiled(x);  // the function as it is, which is recorded
  for (int i = 0; i < 3; ++i) {
    const Tensor y = compiled(x);
    EXPECT_TRUE(equal(y, (x * sigmoid(x)).mul(2)));
    sum(y).backward();
  }
  EXPECT_EQ(compiled.counts().eager, 0);
}

}  // namespace
}  // namespace lockstep::compiler
