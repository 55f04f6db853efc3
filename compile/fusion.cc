#include "compile/fusion.h"

#include <algorithm>

#include "core/ops/batching.h"

namespace lockstep::compiler {

namespace {

/// Below this many elements a call costs more than the pass over memory that it saves.
constexpr int64_t kFewest = 1 << 15;

const ValueType& type_of(const Graph& graph, ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

int64_t element_count(const ValueType& type) { return count_elements(type.sizes); }

/// Whether element i of the value is at place i of its memory, and how many there are is `count`.
bool is_row_of(const ValueType& type, int64_t count) {
  return type.device == kCPU && is_contiguous(type.sizes, type.strides) &&
         element_count(type) == count;
}

/// The number of elements that the node computes one by one from as many of its operands', or 0.
int64_t pointwise_count(const Graph& graph, const Node& node) {
  const Operator& op = *node.op;
  if (op.kind() != OpKind::kStructured || op.form() != OpForm::kFunctional ||
      op.batching() != &batching::elementwise || op.draws_random_numbers() ||
      node.results.size() != 1 || node.results[0] == kAbsent) {
    return 0;
  }
  const ValueType& result = type_of(graph, node.results[0]);
  const int64_t count = element_count(result);
  if (count < kFewest || !is_row_of(result, count)) return 0;
  bool fits = true;
  bool has_row = false;
  for (const NodeArgument& argument : node.arguments) {
    if (argument.kind == NodeArgument::Kind::kTensors) return 0;
    // A fill or a copy in another format does not depend on the elements alone.
    if (argument.constant.tag() == Value::Tag::kMemoryFormat) return 0;
  }
  each_read(node, [&](ValueId id) {
    const ValueType& type = type_of(graph, id);
    const bool is_row = is_row_of(type, count) && same(type.sizes, result.sizes);
    has_row = has_row || is_row;
    fits = fits && (is_row || (type.device == kCPU && type.sizes.size() == 0));
  });
  return fits && has_row ? count : 0;
}

}  // namespace

Graph fuse_pointwise(Graph graph) {
  const size_t count = graph.nodes.size();
  std::vector<int64_t> elements(count);
  // The node that makes a value; inputs are there before all nodes.
  std::vector<std::ptrdiff_t> maker(graph.values.size(), -1);
  for (size_t i = 0; i < count; ++i) {
    elements[i] = pointwise_count(graph, graph.nodes[i]);
    for (const ValueId id : graph.nodes[i].results) {
      if (id != kAbsent) maker[static_cast<size_t>(id)] = static_cast<std::ptrdiff_t>(i);
    }
  }
  std::vector<bool> placed(count, false);
  std::vector<Node> nodes;
  int32_t group = 0;
  for (size_t i = 0; i < count; ++i) {
    if (placed[i]) continue;
    const auto place = [&](size_t at) {
      placed[at] = true;
      nodes.push_back(std::move(graph.nodes[at]));
    };
    const size_t first = nodes.size();
    place(i);
    if (elements[i] == 0) continue;
    // Later nodes that need nothing but what is placed already come before the others.
    for (size_t next = i + 1; next < count; ++next) {
      if (placed[next] || elements[next] != elements[i]) continue;
      bool ready = true;
      each_read(graph.nodes[next], [&](ValueId id) {
        const std::ptrdiff_t made = maker[static_cast<size_t>(id)];
        ready = ready && (made < 0 || placed[static_cast<size_t>(made)]);
      });
      if (ready) place(next);
    }
    if (nodes.size() - first < 2) continue;
    for (size_t member = first; member < nodes.size(); ++member) nodes[member].group = group;
    ++group;
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace lockstep::compiler
