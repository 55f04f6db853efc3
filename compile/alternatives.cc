#include "compile/alternatives.h"

#include <array>
#include <string_view>

#include "core/dispatch/dispatcher.h"

namespace lockstep::compiler {

namespace {

/// linear_gelu gives the gelu of its product, and the product.
Node gelu_of_product(const Node& node) {
  return {.op = &dispatcher().find("gelu"),
          .arguments = {tensor_argument(node.results[1]),
                        constant_argument(Value(std::string_view("tanh")).own())},
          .results = {node.results[0]}};
}

/// stream_sum_norm gives the norm of a sum, and the sum: the stream of stream_norm, which has the
/// same arguments otherwise.
Node norm_of_sum(const Node& node) {
  Node norm{.op = &dispatcher().find("stream_norm"),
            .arguments = {tensor_argument(node.results[1])},
            .results = {node.results[0], kAbsent, kAbsent}};
  norm.arguments.insert(norm.arguments.end(), node.arguments.begin() + 2, node.arguments.end());
  return norm;
}

struct Row {
  std::string_view op;
  Node (*alternative)(const Node& node);
};
constexpr std::array kTable = {Row{"linear_gelu", &gelu_of_product},
                               Row{"stream_sum_norm", &norm_of_sum}};

}  // namespace

std::optional<Node> alternative_of(const Node& node) {
  for (const Row& row : kTable) {
    if (node.op->name() == row.op && node.results.size() > 1 && node.results[1] != kAbsent) {
      return row.alternative(node);
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::compiler
