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
void store(Value& result, const std::vector<ValueId>& ids, size_t& next,
           std::vector<Tensor>& values) {
  const auto place = [&]() -> Tensor* {
    LS_CHECK(next < ids.size(), Error, "[compile] an operator returned more tensors than before.");
    const ValueId id = ids[next++];
    return id == kAbsent ? nullptr : &at(values, id);
  };
  if (result.is_tensor_list()) {
    for (const Tensor& tensor : result.tensors()) {
      if (Tensor* const to = place()) *to = tensor;
    }
  } else if (Tensor* const to = place(); to != nullptr && result.is_tensor()) {
    *to = result.take_tensor();
  }
}

/// The constant without a copy of the list or text that it owns.
Value borrowed(const Value& constant) {
  switch (constant.tag()) {
    case Value::Tag::kOwnedIntList:
      return Value(constant.to_int_list());
    case Value::Tag::kOwnedDoubleList:
      return Value(constant.to_double_list());
    case Value::Tag::kOwnedString:
      return Value(constant.to_string_view());
    default:
      return constant;
  }
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
  SmallVector<Value, 8> arguments;
  SmallVector<Tensor, 2> copies;  // of written arguments
  std::vector<std::vector<Tensor>> lists;
  const bool writes = node.op->schema().is_mutable();
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const NodeArgument& argument = node.arguments[i];
    const bool written = writes && node.op->schema().arguments[i].written;
    const auto tensor_of = [&](ValueId id) -> const Tensor& {
      Tensor& tensor = at(values, id);
      if (!written) return tensor;
      copies.push_back(clone(tensor, MemoryFormat::kPreserve));
      return copies.back();
    };
    if (argument.kind == NodeArgument::Kind::kConstant) {
      arguments.push_back(borrowed(argument.constant));
    } else if (argument.kind == NodeArgument::Kind::kTensor) {
      const ValueId id = argument.values[0];
      if (id == kAbsent) {
        arguments.push_back(Value());
      } else if (written) {
        arguments.push_back(Value(Tensor(tensor_of(id))));
      } else {
        arguments.push_back(Value(tensor_of(id)));
      }
    } else {
      std::vector<Tensor> tensors;
      tensors.reserve(argument.values.size());
      for (const ValueId id : argument.values) {
        tensors.push_back(id == kAbsent ? Tensor() : tensor_of(id));
      }
      if (lists.empty()) lists.reserve(node.arguments.size());  // so that none moves
      lists.push_back(std::move(tensors));
      arguments.push_back(Value(TensorList(lists.back())));
    }
  }
  Stack stack(std::span<Value>(arguments.data(), arguments.size()));
  node.op->call_boxed(stack);
  size_t next = 0;
  for (Value& result : stack.results()) store(result, node.results, next, values);
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
