#include "compile/alternatives.h"

#include <gtest/gtest.h>

#include "compile/compile.h"
#include "compile/interpreter.h"
#include "compile/program.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/fused_linear.h"
#include "core/ops/norm/stream_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"

namespace lockstep::compiler {
namespace {

/// The first result of the one node with an alternative that `body` calls on `inputs`, made by the
/// node and by its alternative.
std::pair<Tensor, Tensor> two_ways(const Body& body, const std::vector<Tensor>& inputs) {
  Graph graph = Program::record(body, inputs, {}).program->forward();
  graph.writes.clear();
  for (Node& node : graph.nodes) {
    node.group = -1;
    node.runs_once = false;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::optional<Node> alternative = alternative_of(graph.nodes[i]);
    if (!alternative) continue;
    const ValueId first = graph.nodes[i].results[0];
    const ValueId again = graph.add_value(type_of(graph, first));
    alternative->results[0] = again;
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, *alternative);
    graph.outputs = {first, again};
    std::vector<Tensor> results = Interpreter(graph).run(inputs);
    return {results[0], results[1]};
  }
  ADD_FAILURE() << "no node has an alternative: " << to_string(graph);
  return {};
}

TEST(Alternatives, HaveTheBitsOfTheOperators) {
  manual_seed(7);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 5}, {2, 7, 64}, {130, 384}}) {
      const int64_t width = sizes.back();
      const Tensor x = randn(sizes).to(dtype), weight = randn({2 * width, width}).to(dtype);
      const auto [gelu, again] = two_ways(
          [](TensorList in) {
            const Gelu both = linear_gelu(in[0], in[1], {});
            return std::vector<Tensor>{both.value, both.of};
          },
          {x, weight});
      EXPECT_TRUE(equal(gelu, again)) << to_string(dtype) << " " << width;
      for (const bool centre : {true, false}) {
        const auto [norm, of_sum] = two_ways(
            [&](TensorList in) {
              const auto [value, sum, mean, rstd] =
                  stream_sum_norm(in[0], in[1], {width}, in[2], {}, 1e-5, centre, dtype);
              return std::vector<Tensor>{value, sum};
            },
            {randn(sizes), x, randn({width})});
        EXPECT_TRUE(equal(norm, of_sum)) << to_string(dtype) << " " << width << centre;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::compiler
