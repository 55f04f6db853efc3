#include "compile/graph/graph.h"

#include <fmt/format.h>

#include <set>

#include "compile/graph/memory_plan.h"
#include "core/base/check.h"
#include "core/dispatch/call_op.h"

namespace lockstep::compiler {

namespace {

/// Throws unless nodes that run once can: `where` says which one is not.
void check_constants(const Graph& graph) {
  std::vector<bool> is_constant(graph.values.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!node.runs_once) continue;
    bool depends =
        node.draws_random_numbers() || node.op->schema().is_mutable() || node.group != -1;
    each_read(node,
              [&](ValueId id) { depends = depends || !is_constant[static_cast<size_t>(id)]; });
    LS_CHECK(!depends, Error, "[compile] node {} ({}) cannot run once: its results may differ.", i,
             node.op->name());
    for (const ValueId id : node.results) {
      if (id != kAbsent) is_constant[static_cast<size_t>(id)] = true;
    }
  }
  for (const ValueId id : graph.outputs) {
    LS_CHECK(id == kAbsent || !is_constant[static_cast<size_t>(id)], Error,
             "[compile] output %{} is made by a node that runs once: the caller may change it.",
             id);
  }
}

/// A tensor argument is one value or none, a list has any number of them, all else has a constant.
bool fits_schema(const Argument& argument, const NodeArgument& given) {
  switch (given.kind) {
    case NodeArgument::Kind::kConstant:
      return (argument.type.base != BaseType::kTensor && fits(argument.type, given.constant)) ||
             (argument.type.optional && given.constant.is_none());
    case NodeArgument::Kind::kTensor:
      return argument.type.base == BaseType::kTensor && !argument.type.list &&
             given.values.size() == 1;
    case NodeArgument::Kind::kTensors:
      return argument.type.base == BaseType::kTensor && argument.type.list;
  }
  return false;
}

}  // namespace

ValueType ValueType::of(const Tensor& tensor) {
  return {tensor.dtype(), tensor.device(), to_dims(tensor.sizes()), to_dims(tensor.strides())};
}

int64_t bytes_of(const ValueType& type) {
  return count_elements(type.sizes) * static_cast<int64_t>(size_of(type.dtype));
}

Tensor make_tensor(const ValueType& type) {
  return empty_strided_tensor(type.sizes, type.strides, type.dtype, type.device);
}

ValueId Graph::add_value(const ValueType& type) {
  values.push_back(type);
  return static_cast<ValueId>(values.size()) - 1;
}

void follow_views(std::span<const Node> nodes, std::vector<ValueId>& memory) {
  for (const Node& node : nodes) {
    if (node.op->kind() != OpKind::kView) continue;
    for (const ValueId result : node.results) {
      if (result == kAbsent) continue;
      memory[static_cast<size_t>(result)] =
          memory[static_cast<size_t>(node.arguments[0].values[0])];
    }
  }
}

std::vector<Value> argument_values(const std::vector<NodeArgument>& arguments, TensorList tensors) {
  std::vector<Value> all;
  for (const NodeArgument& argument : arguments) {
    const TensorList own = tensors.first(argument.values.size());
    tensors = tensors.subspan(own.size());
    if (argument.kind == NodeArgument::Kind::kConstant) {
      all.push_back(argument.constant);
    } else if (argument.kind == NodeArgument::Kind::kTensors) {
      all.emplace_back(own);
    } else {
      all.push_back(own[0].defined() ? Value(own[0]) : Value());
    }
  }
  return all;
}

std::vector<Value> call(const Operator& op, const std::vector<NodeArgument>& arguments,
                        TensorList tensors) {
  std::vector<Value> all = argument_values(arguments, tensors);
  Stack stack(all);
  op.call_boxed(stack);
  std::vector<Value> results;
  for (const Value& result : stack.results()) results.push_back(result.own());
  return results;
}

void check(const Graph& graph) {
  const auto count = static_cast<ValueId>(graph.values.size());
  std::vector<bool> defined(graph.values.size(), false);
  const auto define = [&](ValueId id, const std::string& where) {
    LS_CHECK(id >= 0 && id < count, Error, "[compile] {} defines %{}: expected one of {} values.",
             where, id, count);
    LS_CHECK(!defined[static_cast<size_t>(id)], Error, "[compile] {} defines %{} a second time.",
             where, id);
    defined[static_cast<size_t>(id)] = true;
  };
  const auto need = [&](ValueId id, const std::string& where) {
    LS_CHECK(id >= 0 && id < count && defined[static_cast<size_t>(id)], Error,
             "[compile] {} reads %{}, which is not defined before.", where, id);
  };
  std::set<int32_t> closed;  // groups that ended
  for (const ValueId id : graph.inputs) define(id, "the list of inputs");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    LS_CHECK(node.op != nullptr, Error, "[compile] node {} has no operator.", i);
    const std::string where = fmt::format("node {} ({})", i, node.op->name());
    const std::vector<Argument>& arguments = node.op->schema().arguments;
    LS_CHECK(arguments.size() == node.arguments.size(), Error,
             "[compile] {} has {} arguments: expected {}.", where, node.arguments.size(),
             arguments.size());
    for (size_t a = 0; a < arguments.size(); ++a) {
      LS_CHECK(fits_schema(arguments[a], node.arguments[a]), Error,
               "[compile] {}: argument {} is no {}.", where, arguments[a].name,
               to_string(arguments[a].type));
    }
    if (i > 0 && node.group != graph.nodes[i - 1].group) closed.insert(graph.nodes[i - 1].group);
    LS_CHECK(node.group == -1 || !closed.contains(node.group), Error,
             "[compile] {} is apart from the rest of its group {}.", where, node.group);
    each_read(node, [&](ValueId id) { need(id, where); });
    for (const ValueId id : node.results) {
      if (id != kAbsent) define(id, where);
    }
  }
  for (const ValueId id : graph.outputs) {
    if (id != kAbsent) need(id, "the list of outputs");
  }
  for (const Graph::Write& write : graph.writes) {
    need(write.input, "a write");
    need(write.value, "a write");
  }
  check_constants(graph);
  check_buffers(graph);
}

}  // namespace lockstep::compiler
