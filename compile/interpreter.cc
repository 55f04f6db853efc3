#include "compile/interpreter.h"

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/copy.h"

namespace lockstep::compiler {

namespace {

Tensor& at(std::vector<Tensor>& values, ValueId id) { return values[static_cast<size_t>(id)]; }

/// Stores what a call returned under the node's result numbers; `next` is the first of them.
void store(const Value& result, const std::vector<ValueId>& ids, size_t& next,
           std::vector<Tensor>& values) {
  each_tensor(result, [&](const Tensor& tensor) {
    LS_CHECK(next < ids.size(), Error, "[compile] an operator returned more tensors than before.");
    const ValueId id = ids[next++];
    if (id != kAbsent) at(values, id) = tensor;
  });
  if (result.is_none()) ++next;
}

}  // namespace

Interpreter::Interpreter(Graph graph) : graph_(std::move(graph)) {
  check(graph_);
  constexpr size_t kNever = ~size_t{0};
  std::vector<size_t> last(graph_.values.size(), kNever);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    each_read(graph_.nodes[i], [&](ValueId id) { last[static_cast<size_t>(id)] = i; });
    for (const ValueId id : graph_.nodes[i].results) {
      if (id != kAbsent) last[static_cast<size_t>(id)] = i;  // until something reads it
    }
  }
  const auto keep = [&](ValueId id) {
    if (id != kAbsent) last[static_cast<size_t>(id)] = kNever;
  };
  for (const ValueId id : graph_.outputs) keep(id);
  for (const Graph::Write& write : graph_.writes) {
    keep(write.value);
    keep(write.input);
  }
  prepare_groups(last);
  released_.resize(graph_.nodes.size());
  for (size_t id = 0; id < last.size(); ++id) {
    if (last[id] != kNever) released_[last[id]].push_back(static_cast<ValueId>(id));
  }
}

void Interpreter::prepare_groups(const std::vector<size_t>& last_reads) {
  const std::vector<Node>& nodes = graph_.nodes;
  group_ends_.assign(nodes.size(), 0);
  for (size_t first = 0; first < nodes.size();) {
    size_t end = first + 1;
    if (nodes[first].group != -1) {
      while (end < nodes.size() && nodes[end].group == nodes[first].group) ++end;
      std::vector<bool> is_read_later(last_reads.size());
      for (size_t id = 0; id < last_reads.size(); ++id) is_read_later[id] = last_reads[id] >= end;
      groups_.try_emplace(first, graph_, std::span(nodes).subspan(first, end - first),
                          is_read_later);
      group_ends_[first] = end;
    }
    first = end;
  }
}

void Interpreter::run_node(const Node& node, std::vector<Tensor>& values) const {
  const Schema& schema = node.op->schema();
  SmallVector<Value, 8> arguments;
  std::vector<Tensor> copies;  // of written arguments
  std::vector<std::vector<Tensor>> lists;
  lists.reserve(node.arguments.size());
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const NodeArgument& argument = node.arguments[i];
    if (argument.kind == NodeArgument::Kind::kConstant) {
      arguments.push_back(argument.constant);
      continue;
    }
    std::vector<Tensor> tensors;
    for (const ValueId id : argument.values) {
      tensors.push_back(id == kAbsent ? Tensor() : at(values, id));
      if (id == kAbsent || !schema.arguments[i].written) continue;
      tensors.back() = clone(tensors.back(), MemoryFormat::kPreserve);
      copies.push_back(tensors.back());
    }
    if (argument.kind == NodeArgument::Kind::kTensors) {
      lists.push_back(std::move(tensors));
      arguments.push_back(Value(TensorList(lists.back())));
    } else if (tensors[0].defined()) {
      arguments.push_back(Value(std::move(tensors[0])));
    } else {
      arguments.push_back(Value());
    }
  }
  Stack stack(std::span<Value>(arguments.data(), arguments.size()));
  node.op->call_boxed(stack);
  size_t next = 0;
  for (const Value& result : stack.results()) store(result, node.results, next, values);
  next = node.results.size() - copies.size();
  for (Tensor& copy : copies) at(values, node.results[next++]) = std::move(copy);
}

std::vector<Tensor> Interpreter::run(TensorList inputs) const {
  LS_CHECK(inputs.size() == graph_.inputs.size(), Error,
           "[compile] the graph takes {} tensors, got {}.", graph_.inputs.size(), inputs.size());
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  std::vector<Tensor> values(graph_.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) at(values, graph_.inputs[i]) = inputs[i];
  for (size_t i = 0; i < graph_.nodes.size();) {
    size_t end = i + 1;
    if (group_ends_[i] != 0) {
      groups_.at(i).run(values);
      end = group_ends_[i];
    } else {
      run_node(graph_.nodes[i], values);
    }
    for (; i < end; ++i) {
      for (const ValueId id : released_[i]) at(values, id) = Tensor();
    }
  }
  for (const Graph::Write& write : graph_.writes)
    copy_(at(values, write.input), at(values, write.value));
  std::vector<Tensor> outputs;
  outputs.reserve(graph_.outputs.size());
  for (const ValueId id : graph_.outputs) {
    outputs.push_back(id == kAbsent ? Tensor() : at(values, id));
  }
  return outputs;
}

}  // namespace lockstep::compiler
