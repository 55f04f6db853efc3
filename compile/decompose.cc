#include "compile/decompose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "compile/graph/graph.h"
#include "compile/graph/moved_graph.h"
#include "compile/recorder.h"
#include "core/base/check.h"
#include "core/dispatch/decompositions.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/random_state_guard.h"

namespace lockstep::compiler {

namespace {

using BoxedBody = decltype(Decomposition::body);
using BodyTable = std::map<const Operator*, BoxedBody>;

/// The body that a composite has.
BoxedBody own_body(const Operator& op) {
  LS_CHECK(has_decomposition(op), Error,
           "[compile] decompose: {} is no composite: expected a body. Say what it is made of.",
           op.name());
  return [&op](std::span<const Value> arguments) {
    std::vector<Value> values(arguments.begin(), arguments.end());
    Stack stack(values);
    lockstep::decompose(op, stack);
    std::vector<Tensor> results;
    for (const Value& result : stack.results()) {
      each_tensor(result, [&](const Tensor& tensor) { results.push_back(tensor); });
      if (result.is_none()) results.emplace_back();
    }
    return results;
  };
}

bool writes_arguments(const Operator& op) {
  return std::ranges::any_of(op.schema().arguments,
                             [](const Argument& argument) { return argument.written; });
}

bool same_elements(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && same(a.sizes, b.sizes) && same(a.strides, b.strides);
}

/// The values that a node reads, each once, in the order in which it does.
std::vector<ValueId> reads_of(const Node& node) {
  std::vector<ValueId> reads;
  each_read(node, [&](ValueId id) {
    if (std::ranges::find(reads, id) == reads.end()) reads.push_back(id);
  });
  return reads;
}

/// What `body` calls for a node with these types: a graph on meta whose inputs are the node's
/// reads. Nothing where it cannot be recorded.
std::optional<Graph> recorded_body(const BoxedBody& body, const Node& node, const Graph& graph) {
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  const RandomStateGuard others_draw_the_same;
  const DefaultDeviceGuard on_meta(kMeta);
  Recorder recorder;
  std::map<ValueId, Tensor> inputs;
  for (const ValueId id : reads_of(node)) {
    const ValueType& type = type_of(graph, id);
    inputs[id] = empty_strided_tensor(type.sizes, type.strides, type.dtype, kMeta);
    recorder.add_input(inputs[id]);
  }
  std::vector<Tensor> tensors;
  for (const NodeArgument& argument : node.arguments) {
    for (const ValueId id : argument.values) {
      tensors.push_back(id == kAbsent ? Tensor() : inputs.at(id));
    }
  }
  std::vector<Value> arguments = argument_values(node.arguments, tensors);
  for (Value& value : arguments) {
    if (value.tag() == Value::Tag::kDevice) value = Value(kMeta);
  }
  std::vector<Tensor> results;
  {
    const ModeGuard recording(recorder);
    results = body(arguments);
  }
  std::vector<ValueId> outputs;
  for (const Tensor& result : results) outputs.push_back(recorder.value_of(result));
  const bool reads_others = recorder.inputs().size() != inputs.size();
  if (!recorder.failure().empty() || reads_others || !recorder.writes().empty()) return {};
  Graph made = recorder.graph();
  made.outputs = std::move(outputs);
  return made;
}

/// The values of `made` as values of `graph`, of which those that `node` reads and gives are there.
/// Nothing where its outputs cannot be the node's results.
std::optional<std::map<ValueId, ValueId>> places_of(const Graph& made, const Node& node,
                                                    const Graph& graph) {
  std::map<ValueId, ValueId> places;
  const std::vector<ValueId> reads = reads_of(node);
  for (size_t i = 0; i < reads.size(); ++i) places[made.inputs[i]] = reads[i];
  if (made.outputs.size() != node.results.size()) return {};
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i] == kAbsent) continue;
    const ValueId id = made.outputs[i];
    if (id == kAbsent || !same_elements(type_of(made, id), type_of(graph, node.results[i])) ||
        !places.try_emplace(id, node.results[i]).second) {
      return {};
    }
  }
  return places;
}

/// Appends the nodes of `made` to `nodes`, in place of the node.
void write_out(const Graph& made, std::map<ValueId, ValueId> places, const Node& node, Graph& graph,
               std::vector<Node>& nodes) {
  const auto of_node = std::ranges::find_if(node.results, [](ValueId id) { return id != kAbsent; });
  const Device device = type_of(graph, *of_node).device;
  const auto placed = [&](ValueId id) {
    if (id == kAbsent) return kAbsent;
    const auto [found, is_new] = places.try_emplace(id, kAbsent);
    if (is_new) {
      ValueType type = type_of(made, id);
      type.device = device;
      found->second = graph.add_value(type);
    }
    return found->second;
  };
  Graph there = moved_graph(made, device);
  for (Node& each : there.nodes) {
    for (NodeArgument& argument : each.arguments) {
      for (ValueId& id : argument.values) id = placed(id);
    }
    for (ValueId& id : each.results) id = placed(id);
    each.runs_once = node.runs_once;
    nodes.push_back(std::move(each));
  }
}

Graph decomposed(const BodyTable& table, Graph graph) {
  std::vector<Node> nodes;
  for (Node& node : std::exchange(graph.nodes, {})) {
    const auto found = table.find(node.op);
    const bool has_result =
        std::ranges::any_of(node.results, [](ValueId id) { return id != kAbsent; });
    if (found != table.end() && has_result && !writes_arguments(*node.op)) {
      const std::optional<Graph> made = recorded_body(found->second, node, graph);
      if (auto places = made ? places_of(*made, node, graph) : std::nullopt) {
        write_out(*made, *std::move(places), node, graph, nodes);
        continue;
      }
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace

Pass decompose(std::vector<Decomposition> table) {
  BodyTable by_operator;
  for (Decomposition& each : table) {
    const Operator& op = dispatcher().find(each.op);
    by_operator.insert_or_assign(&op, each.body ? std::move(each.body) : own_body(op));
  }
  return {"decompose", [table = std::move(by_operator)](Graph graph) {
            return decomposed(table, std::move(graph));
          }};
}

}  // namespace lockstep::compiler
