#include "compile/interpreter.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/ownership.h"
#include "compile/host_read.h"
#include "core/base/check.h"
#include "core/dispatch/result_places.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/copy.h"

namespace lockstep::compiler {

namespace {

Tensor& value_at(std::vector<Tensor>& values, ValueId id) {
  return values[static_cast<size_t>(id)];
}

/// Stores what a call returned under the node's result numbers; `next` is the first of them.
void store(Value& result, const std::vector<ValueId>& ids, size_t& next,
           std::vector<Tensor>& values) {
  const auto place = [&]() -> Tensor* {
    LS_CHECK(next < ids.size(), Error, "[compile] an operator returned more tensors than before.");
    const ValueId id = ids[next++];
    return id == kAbsent ? nullptr : &value_at(values, id);
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

Interpreter::Interpreter(Graph graph, const std::vector<ValueId>& places)
    : graph_(std::move(graph)), is_place_(graph_.values.size()) {
  check(graph_);
  for (const Node& node : graph_.nodes) writes_.push_back(node.op->schema().is_mutable());
  for (const ValueId id : places) is_place_[static_cast<size_t>(id)] = true;
  for (const Node& node : graph_.nodes) {
    if (node.op->kind() != OpKind::kView || node.results.size() != 1) continue;
    each_read(node, [&](ValueId id) {  // a view of a place is one
      if (is_place_[static_cast<size_t>(id)])
        is_place_[static_cast<size_t>(node.results[0])] = true;
    });
  }
  constexpr size_t kNever = ~size_t{0};
  std::vector<size_t>& last = last_reads_;
  last.assign(graph_.values.size(), kNever);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    each_read(graph_.nodes[i], [&](ValueId id) { last[static_cast<size_t>(id)] = i; });
    for (const ValueId id : graph_.nodes[i].results) {
      if (id != kAbsent) last[static_cast<size_t>(id)] = i;  // until something reads it
    }
  }
  is_read_.resize(last.size());
  for (size_t id = 0; id < last.size(); ++id) is_read_[id] = last[id] != kNever;
  const auto keep = [&](ValueId id) {
    if (id == kAbsent) return;
    last[static_cast<size_t>(id)] = kNever;
    is_read_[static_cast<size_t>(id)] = true;
  };
  for (const ValueId id : graph_.outputs) keep(id);
  for (const Graph::Write& write : graph_.writes) {
    keep(write.value);
    keep(write.input);
  }
  prepare_groups(nullptr);
  released_.resize(graph_.nodes.size());
  for (size_t id = 0; id < last.size(); ++id) {
    if (last[id] != kNever) released_[last[id]].push_back(static_cast<ValueId>(id));
  }
  prepare_buffers();
  make_constants();
}

void Interpreter::prepare_buffers() {
  buffers_ = planned_buffers(graph_);
  sharing_.assign(graph_.nodes.size(), {});
  given_back_.assign(graph_.nodes.size(), {});
  for (size_t b = 0; b < buffers_.size(); ++b) given_back_[buffers_[b].last_node].push_back(b);
  size_t first = 0;
  for (size_t i = 0; i < graph_.nodes.size() && !buffers_.empty(); ++i) {
    const Node& node = graph_.nodes[i];
    if (node.group == -1 || group_ends_[i] != 0) first = i;
    for (size_t r = 0; r < node.results.size(); ++r) {
      const ValueId id = node.results[r];
      if (id == kAbsent || graph_.buffers[static_cast<size_t>(id)] == kOwnMemory) continue;
      sharing_[first].push_back({id, r,
                                 static_cast<size_t>(graph_.buffers[static_cast<size_t>(id)]),
                                 static_cast<size_t>(bytes_of(type_of(graph_, id)))});
    }
  }
}

Ref<Storage> Interpreter::memory_of(const Sharing& result, Buffers& buffers) const {
  const PlannedBuffer& planned = buffers_[result.buffer];
  Ref<Storage>& buffer = buffers[result.buffer];
  if (!buffer) buffer = make_ref<Storage>(planned.bytes, planned.device);
  return make_ref<Storage>(buffer, 0, result.bytes);
}

void Interpreter::make_constants() {
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  std::vector<bool> is_needed(graph_.values.size());
  for (const Node& node : graph_.nodes) {
    if (node.runs_once) continue;
    each_read(node, [&](ValueId id) { is_needed[static_cast<size_t>(id)] = true; });
  }
  for (const Graph::Write& write : graph_.writes)
    is_needed[static_cast<size_t>(write.value)] = true;
  std::vector<Tensor> values(graph_.values.size());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!graph_.nodes[i].runs_once) continue;
    Buffers none;
    run_node(i, values, none);
    for (const ValueId id : graph_.nodes[i].results) {
      if (id == kAbsent || !is_needed[static_cast<size_t>(id)]) continue;
      constants_.emplace_back(id, value_at(values, id));
    }
  }
}

Interpreter::Interpreter(Graph graph, const std::vector<ValueId>& places,
                         const std::vector<std::vector<ValueId>>& not_before)
    : Interpreter(std::move(graph), places) {
  sent_.resize(graph_.nodes.size());
  const std::vector<ValueId>& outputs = graph_.outputs;
  for (size_t i = 0; i < std::min(outputs.size(), not_before.size()); ++i) {
    if (outputs[i] == kAbsent || std::ranges::count(outputs, outputs[i]) != 1) continue;
    std::optional<size_t> last;  // node that makes the output, or reads it or what it waits for
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto concerns = [&](ValueId id) {
        return id == outputs[i] || std::ranges::find(not_before[i], id) != not_before[i].end();
      };
      bool found =
          std::ranges::find(graph_.nodes[n].results, outputs[i]) != graph_.nodes[n].results.end();
      each_read(graph_.nodes[n], [&](ValueId id) { found = found || concerns(id); });
      if (found) last = n;
    }
    if (last) sent_[*last].push_back(i);
  }
}

Interpreter::Interpreter(Graph graph, const Interpreter& alike)
    : graph_(std::move(graph)),
      last_reads_(alike.last_reads_),
      is_place_(alike.is_place_),
      is_read_(alike.is_read_),
      writes_(alike.writes_),
      released_(alike.released_),
      sent_(alike.sent_) {
  prepare_groups(&alike);
  prepare_buffers();
  make_constants();
}

void Interpreter::prepare_groups(const Interpreter* alike) {
  const std::vector<Node>& nodes = graph_.nodes;
  group_ends_.assign(nodes.size(), 0);
  for (size_t first = 0; first < nodes.size();) {
    size_t end = first + 1;
    if (nodes[first].group != -1) {
      while (end < nodes.size() && nodes[end].group == nodes[first].group) ++end;
      std::vector<bool> is_read_later(last_reads_.size());
      for (size_t id = 0; id < last_reads_.size(); ++id) is_read_later[id] = last_reads_[id] >= end;
      const std::span<const Node> members = std::span(nodes).subspan(first, end - first);
      const bool has_rows = std::ranges::any_of(members, &works_along_dims);
      if (has_rows && makes_row_kernels(graph_, members[0])) {
        const RowKernelGroup* const before =
            alike != nullptr ? &alike->row_kernels_.at(first) : nullptr;
        row_kernels_.try_emplace(first, graph_, members, is_read_later, before);
      } else if (has_rows) {
        const RowGroup* const before = alike != nullptr ? &alike->rows_.at(first) : nullptr;
        rows_.try_emplace(first, graph_, members, is_read_later, before);
      } else if (alike != nullptr &&
                 same_calls(members,
                            std::span(alike->graph_.nodes).subspan(first, members.size()))) {
        loops_.try_emplace(first, alike->loops_.at(first), graph_, members);
      } else {
        loops_.try_emplace(first, graph_, members, is_read_later);
      }
      group_ends_[first] = end;
    }
    first = end;
  }
}

void Interpreter::request_kernels() {
  for (auto& [first, group] : loops_) group.request_kernel();
  for (auto& [first, group] : rows_) group.request_kernels();
  for (auto& [first, group] : row_kernels_) group.request_kernel();
}

std::vector<const GroupKernel*> Interpreter::kernels() const {
  std::vector<const GroupKernel*> all;
  for (const auto& [first, group] : loops_) all.push_back(&group.kernel());
  for (const auto& [first, group] : rows_)
    std::ranges::copy(group.kernels(), std::back_inserter(all));
  for (const auto& [first, group] : row_kernels_) all.push_back(&group.kernel());
  return all;
}

Tensor Interpreter::take_written(size_t at, ValueId id, std::vector<Tensor>& values) const {
  const Node& node = graph_.nodes[at];
  int reads = 0;
  each_read(node, [&](ValueId read) { reads += read == id ? 1 : 0; });
  const bool is_last = std::ranges::find(released_[at], id) != released_[at].end();
  Tensor& tensor = value_at(values, id);
  if (reads != 1 || !is_last) return {};
  if (!is_place_[static_cast<size_t>(id)] && !is_exclusive(tensor)) return {};
  return std::move(tensor);
}

void Interpreter::run_group(size_t first, std::vector<Tensor>& values, Buffers& buffers) const {
  for (const Sharing& result : sharing_[first]) {
    const ValueType& type = type_of(graph_, result.value);
    value_at(values, result.value) = Tensor(
        make_ref<TensorImpl>(memory_of(result, buffers), type.sizes, type.strides, 0, type.dtype));
  }
  if (const auto loop = loops_.find(first); loop != loops_.end()) {
    loop->second.run(values);
  } else if (const auto kernel = row_kernels_.find(first); kernel != row_kernels_.end()) {
    kernel->second.run(values);
  } else {
    rows_.at(first).run(values);
  }
}

void Interpreter::run_node(size_t at, std::vector<Tensor>& values, Buffers& buffers) const {
  const Node& node = graph_.nodes[at];
  SmallVector<Value, 8> arguments;
  SmallVector<Tensor, 2> written;  // copies of written arguments, or these themselves
  std::vector<std::vector<Tensor>> lists;
  const bool writes = writes_[at];
  const auto write_to = [&](ValueId id) -> const Tensor& {
    Tensor own = take_written(at, id, values);
    if (!own.defined()) own = clone(value_at(values, id), MemoryFormat::kPreserve);
    written.push_back(std::move(own));
    return written.back();
  };
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const NodeArgument& argument = node.arguments[i];
    const bool is_written = writes && node.op->schema().arguments[i].written;
    const auto tensor_of = [&](ValueId id) -> const Tensor& {
      return is_written ? write_to(id) : value_at(values, id);
    };
    if (argument.kind == NodeArgument::Kind::kConstant) {
      arguments.push_back(borrowed(argument.constant));
    } else if (argument.kind == NodeArgument::Kind::kTensor) {
      const ValueId id = argument.values[0];
      if (id == kAbsent) {
        arguments.push_back(Value());
      } else if (is_written) {
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
  if (sharing_[at].empty()) {
    node.op->call_boxed(stack);
  } else {
    Buffers memory(node.results.size());
    for (const Sharing& result : sharing_[at]) memory[result.result] = memory_of(result, buffers);
    const ResultPlaces places(*node.op, memory);
    node.op->call_boxed(stack);
  }
  size_t next = 0;
  for (Value& result : stack.results()) store(result, node.results, next, values);
  next = node.results.size() - written.size();
  for (Tensor& tensor : written) {
    value_at(values, node.results[next++]) = std::move(tensor);
  }
}

std::vector<Tensor> Interpreter::run(std::vector<Tensor> inputs) const {
  return run(std::move(inputs), Wishes{});
}
std::vector<Tensor> Interpreter::run(std::vector<Tensor> inputs, const SendOutput& send) const {
  return run(std::move(inputs), Wishes{.send = sent_.empty() ? nullptr : &send});
}
void Interpreter::run_into(std::vector<Tensor> inputs, std::span<const Tensor> results) const {
  const std::vector<Tensor> outputs = run(std::move(inputs), Wishes{.results = results});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data() != results[i].data()) copy_(results[i], outputs[i]);
  }
}

std::vector<Tensor> Interpreter::run(std::vector<Tensor> inputs, const Wishes& wishes) const {
  LS_CHECK(inputs.size() == graph_.inputs.size(), Error,
           "[compile] the graph takes {} tensors, got {}.", graph_.inputs.size(), inputs.size());
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  std::vector<Tensor> values(graph_.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor input = std::move(inputs[i]);  // dropped at once if nothing reads it
    const ValueId id = graph_.inputs[i];
    if (is_read_[static_cast<size_t>(id)]) value_at(values, id) = std::move(input);
  }
  // Groups compute their results where there is memory for them.
  for (size_t i = 0; i < wishes.results.size(); ++i) {
    value_at(values, graph_.outputs[i]) = wishes.results[i];
  }
  for (const auto& [id, constant] : constants_) value_at(values, id) = constant;
  Buffers buffers(buffers_.size());
  for (size_t i = 0; i < graph_.nodes.size();) {
    size_t end = i + 1;
    if (group_ends_[i] != 0) {
      run_group(i, values, buffers);
      end = group_ends_[i];
    } else if (!graph_.nodes[i].runs_once) {
      run_node(i, values, buffers);
    }
    const size_t first = i;
    for (; i < end; ++i) {
      for (const ValueId id : released_[i]) value_at(values, id) = Tensor();
      for (const size_t b : given_back_[i]) buffers[b] = {};
    }
    for (size_t n = first; wishes.send != nullptr && n < end; ++n) {
      for (const size_t output : sent_[n]) {
        (void)(*wishes.send)(output, value_at(values, graph_.outputs[output]));
      }
    }
  }
  for (const Graph::Write& write : graph_.writes)
    copy_(value_at(values, write.input), value_at(values, write.value));
  std::vector<Tensor> outputs;
  outputs.reserve(graph_.outputs.size());
  for (const ValueId id : graph_.outputs) {
    outputs.push_back(id == kAbsent ? Tensor() : value_at(values, id));
  }
  return outputs;
}

}  // namespace lockstep::compiler
