#include "compile/recorder.h"

#include <algorithm>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/value_tensors.h"

namespace lockstep::compiler {

namespace {

bool same_geometry(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.storage_offset() == b.storage_offset() &&
         same(a.sizes(), b.sizes()) && same(a.strides(), b.strides());
}

/// Whether one is the matrix `b` transposed, in the same memory.
bool is_transpose(const Tensor& a, const Tensor& b) {
  return a.dim() == 2 && b.dim() == 2 && a.dtype() == b.dtype() &&
         a.storage_offset() == b.storage_offset() && a.size(0) == b.size(1) &&
         a.size(1) == b.size(0) && a.stride(0) == b.stride(1) && a.stride(1) == b.stride(0);
}

/// What a call does that a graph cannot hold, or empty. A graph that is split holds what the host
/// reads.
std::string unrecordable(const Operator& op, std::span<const Value> arguments, bool splits) {
  if (op.kind() == OpKind::kHostValue && !splits) return "it reads values on the host";
  if (op.kind() == OpKind::kDynamic && !splits) {
    return "the sizes of its result depend on elements";
  }
  for (const Value& argument : arguments) {
    if (argument.tag() == Value::Tag::kGenerator) return "it has a generator of its own";
  }
  for (const Return& returned : op.schema().returns) {
    if (op.kind() == OpKind::kHostValue) break;
    if (returned.type.base != BaseType::kTensor) return "it returns a value on the host";
  }
  return {};
}

/// Address, sizes and strides of every written argument, to see whether a call moves one.
std::vector<Tensor> written_tensors(const Operator& op, std::span<const Value> arguments) {
  std::vector<Tensor> written;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!op.schema().arguments[i].written) continue;
    each_defined_tensor(arguments[i], [&](const Tensor& tensor) { written.push_back(tensor); });
  }
  return written;
}

/// Whether the functional form of an in-place call gives a tensor of self's dtype and geometry.
bool functional_form_fits(const Operator& op, std::span<const Value> arguments) {
  if (op.form() != OpForm::kInPlace || op.kind() != OpKind::kStructured) return false;
  const NoGradGuard no_grad;
  try {
    std::vector<Value> shapes = map_tensors(arguments, [](const Tensor& tensor) {
      return empty_strided_tensor(tensor.sizes(), tensor.strides(), tensor.dtype(), kMeta);
    });
    Stack stack(shapes);
    op.root().call_boxed(stack);
    const Tensor& shape = stack.results()[0].tensor();
    const Tensor& self = arguments[0].tensor();
    return shape.dtype() == self.dtype() && same(shape.sizes(), self.sizes()) &&
           same(shape.strides(), self.strides());
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void Recorder::fail(std::string reason) {
  if (failure_.empty()) failure_ = std::move(reason);
}

Recorder::Memory* Recorder::memory_of(const Tensor& tensor) const {
  const auto found = memories_.find(tensor.storage().get());
  return found == memories_.end() ? nullptr : found->second.get();
}

void Recorder::know(const Tensor& tensor, ValueId value) {
  std::unique_ptr<Memory>& memory = memories_[tensor.storage().get()];
  if (!memory) memory = std::make_unique<Memory>(Memory{.base = tensor, .value = value});
  note(tensor, *memory, value);
}

void Recorder::note(const Tensor& tensor, Memory& memory, ValueId value) {
  Known& known = known_[tensor.impl()];
  if (known.memory != &memory) {
    if (known.memory != nullptr) std::erase(known.memory->tensors, tensor.impl());
    memory.tensors.push_back(tensor.impl());
  }
  known = {tensor, &memory, value, memory.generation};
}

void Recorder::add_input(const Tensor& tensor) {
  Memory* const memory = memory_of(tensor);
  if (memory != nullptr) memory->is_shared = true;
  const ValueId id = graph_.add_value(ValueType::of(tensor));
  graph_.inputs.push_back(id);
  inputs_.push_back(tensor);
  know(tensor, id);
  memory_of(tensor)->is_input = true;
}

ValueId Recorder::add_node(const Operator& op, std::vector<NodeArgument> arguments,
                           const ValueType& type) {
  const ValueId id = graph_.add_value(type);
  graph_.nodes.push_back({&op, std::move(arguments), {id}});
  return id;
}

std::optional<ValueId> Recorder::twin_of(const Tensor& tensor, const Memory& memory) const {
  if (same_geometry(tensor, memory.base)) return memory.value;
  for (const TensorImpl* const impl : memory.tensors) {
    const Known& known = known_.at(impl);
    if (known.generation == memory.generation && same_geometry(known.tensor, tensor)) {
      return known.value;
    }
  }
  return std::nullopt;
}

ValueId Recorder::value_of(const Tensor& tensor) {
  if (!tensor.defined()) return kAbsent;
  const auto found = known_.find(tensor.impl());
  if (found != known_.end() && found->second.generation == found->second.memory->generation &&
      same_geometry(found->second.tensor, tensor)) {
    return found->second.value;
  }
  Memory* const memory = memory_of(tensor);
  if (memory == nullptr) {
    add_input(tensor);
    return graph_.inputs.back();
  }
  std::optional<ValueId> value = twin_of(tensor, *memory);
  if (!value) {
    if (memory->generation == 0 || tensor.dtype() != memory->base.dtype()) {
      fail("a view that was made where it cannot be seen shares memory with a recorded tensor");
      return memory->value;
    }
    value = add_view_of_base(tensor, *memory);
  }
  note(tensor, *memory, *value);
  return *value;
}

ValueId Recorder::add_view_of_base(const Tensor& tensor, const Memory& memory) {
  if (is_transpose(tensor, memory.base)) {
    return add_node(dispatcher().find("t"), {tensor_argument(memory.value)}, ValueType::of(tensor));
  }
  // After a change the base is a tensor of its own, whose elements begin its memory.
  const int64_t offset = tensor.storage_offset() - memory.base.storage_offset();
  return add_node(
      dispatcher().find("as_strided"),
      {tensor_argument(memory.value), constant_argument(Value(tensor.sizes()).own()),
       constant_argument(Value(tensor.strides()).own()), constant_argument(Value(offset))},
      ValueType::of(tensor));
}

ValueId Recorder::value_read(const Tensor& tensor) {
  if (!tensor.defined()) return kAbsent;
  Memory* const memory = memory_of(tensor);
  if (memory != nullptr && memory->is_uninitialised && memory->generation == 0) {
    // No operator has written it, so the host has: it is a constant.
    memory->is_uninitialised = false;
    const Tensor base = memory->base;
    const ValueId id = graph_.add_value(ValueType::of(base));
    graph_.inputs.push_back(id);
    inputs_.push_back(base);
    memory->value = id;
    memory->is_input = true;
    for (const TensorImpl* const impl : memory->tensors) {
      Known& known = known_.at(impl);
      known.value = same_geometry(known.tensor, base) ? id : kAbsent;
    }
    if (known_[tensor.impl()].value == kAbsent) {
      fail("the host writes a view of a tensor made by empty");
    }
  }
  return value_of(tensor);
}

std::optional<size_t> Recorder::input_index(const Tensor& tensor) const {
  const auto found =
      std::ranges::find_if(inputs_, [&](const Tensor& input) { return input.is_same(tensor); });
  if (found == inputs_.end()) return std::nullopt;
  return static_cast<size_t>(found - inputs_.begin());
}

bool Recorder::is_view_of_changed_input(const Tensor& tensor) const {
  const Memory* const memory = memory_of(tensor);
  return memory != nullptr && memory->is_input && memory->generation > 0 && !input_index(tensor);
}

std::vector<Graph::Write> Recorder::writes() {
  std::vector<Graph::Write> writes;
  const std::vector<Tensor> inputs = inputs_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Memory* const memory = memory_of(inputs[i]);
    if (memory->generation > 0) writes.push_back({graph_.inputs[i], value_of(inputs[i])});
  }
  return writes;
}

std::vector<NodeArgument> Recorder::arguments_of(const Operator& op,
                                                 std::span<const Value> arguments) {
  std::vector<NodeArgument> all;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Type& type = op.schema().arguments[i].type;
    NodeArgument argument;
    if (type.base != BaseType::kTensor) {
      argument.constant = arguments[i].own();
    } else {
      argument.kind = type.list ? NodeArgument::Kind::kTensors : NodeArgument::Kind::kTensor;
      each_tensor(arguments[i], [&](const Tensor& tensor) {
        if (tensor.defined()) used_.push_back(tensor.storage().get());
        argument.values.push_back(op.schema().arguments[i].written ? value_of(tensor)
                                                                   : value_read(tensor));
      });
      if (!type.list && argument.values.empty()) argument.values.push_back(kAbsent);
    }
    all.push_back(std::move(argument));
  }
  return all;
}

void Recorder::change(const Tensor& tensor, ValueId value) {
  Memory& memory = *memory_of(tensor);
  const Tensor& base = memory.base;
  if (memory.is_shared) return fail("an input that shares memory with another one is changed");
  if (tensor.dtype() != base.dtype()) return fail("a view of another dtype is changed");
  // What is computed for it would lie in memory without the gaps.
  if (!is_dense(base.sizes(), base.strides())) return fail("a part of a view is changed");
  if (same_geometry(tensor, base)) {
    memory.value = value;
    ++memory.generation;
    note(tensor, memory, value);
    return;
  }
  if (is_transpose(tensor, base)) {  // all elements of the base are new
    memory.value = add_node(dispatcher().find("t"), {tensor_argument(value)}, ValueType::of(base));
    ++memory.generation;
    return;
  }
  ValueId whole = memory.value;
  if (memory.is_input && memory.generation == 0) {
    // An input may begin anywhere in its memory; its copy begins its own.
    whole = add_node(dispatcher().find("clone"),
                     {tensor_argument(whole), constant_argument(Value(MemoryFormat::kPreserve))},
                     ValueType::of(base));
  }
  const int64_t offset = tensor.storage_offset() - base.storage_offset();
  memory.value =
      add_node(dispatcher().find("as_strided_scatter"),
               {tensor_argument(whole), tensor_argument(value),
                constant_argument(Value(tensor.sizes()).own()),
                constant_argument(Value(tensor.strides()).own()), constant_argument(Value(offset))},
               ValueType::of(base));
  ++memory.generation;  // the tensor, too, is taken anew: `value` has no gaps
}

void Recorder::record_results(Node& node, const Stack& stack) {
  const std::vector<Return>& returns = node.op->schema().returns;
  for (size_t i = 0; i < stack.results().size(); ++i) {
    each_tensor(stack.results()[i], [&](const Tensor& tensor) {
      const bool written = node.op->schema().written_alias(i) >= 0;
      if (!tensor.defined() || written) {
        node.results.push_back(kAbsent);
        return;
      }
      const ValueId id = graph_.add_value(ValueType::of(tensor));
      node.results.push_back(id);
      know(tensor, id);
      used_.push_back(tensor.storage().get());
      if (node.op->allocates_only()) memory_of(tensor)->is_uninitialised = true;
    });
    if (stack.results()[i].is_none() && !returns[i].type.list) node.results.push_back(kAbsent);
  }
}

/// Whether all references to the memory are those of the recorder, and of its tensors to each
/// other.
bool Recorder::is_unreachable(const Memory& memory) {
  const TensorImpl* const base = memory.base.impl();
  std::vector<const TensorImpl*> impls = memory.tensors;
  if (std::ranges::find(impls, base) == impls.end()) impls.push_back(base);
  if (memory.base.storage()->use_count() != impls.size()) return false;
  return std::ranges::all_of(impls, [&](const TensorImpl* impl) {
    uint32_t own = impl == base ? 1 : 0;
    own += std::ranges::find(memory.tensors, impl) != memory.tensors.end() ? 1 : 0;
    for (const TensorImpl* const other : impls) own += other->base.get() == impl ? 1 : 0;
    return impl->use_count() == own;
  });
}

bool Recorder::forget(const Memory& memory) {
  if (memory.is_input || !is_unreachable(memory)) return false;
  for (const TensorImpl* const impl : memory.tensors) known_.erase(impl);
  return true;
}

void Recorder::forget_unreachable() {
  // A look at all costs as much as there is of it, so that it is worth it once in a while.
  constexpr size_t kShare = 8;
  if (kShare * ++calls_since_look_ >= memories_.size()) {
    calls_since_look_ = 0;
    std::erase_if(memories_, [&](const auto& entry) { return forget(*entry.second); });
  } else {
    for (const std::vector<const Storage*>* const used : {&used_, &used_before_}) {
      for (const Storage* const storage : *used) {
        const auto found = memories_.find(storage);
        if (found != memories_.end() && forget(*found->second)) memories_.erase(found);
      }
    }
  }
  used_before_ = std::exchange(used_, {});
}

void Recorder::call(const Operator& op, KeySet keys, Stack& stack) {
  record(op, keys, stack);
  if (failure_.empty()) forget_unreachable();
}

void Recorder::record(const Operator& op, KeySet keys, Stack& stack) {
  if (!failure_.empty()) return pass_on(op, keys, stack);
  if (const std::string reason = unrecordable(op, stack.arguments(), splits_); !reason.empty()) {
    fail(fmt::format("{}: {}", op.name(), reason));
    return pass_on(op, keys, stack);
  }
  if (op.kind() == OpKind::kHostValue) return record_read(op, keys, stack);
  // Before the call, which may change its arguments, and may move from them.
  std::vector<NodeArgument> arguments = arguments_of(op, stack.arguments());
  if (!failure_.empty()) return pass_on(op, keys, stack);
  const std::vector<Tensor> written = written_tensors(op, stack.arguments());
  std::vector<Tensor> places;
  for (const Tensor& tensor : written) {
    places.push_back(alias_tensor(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset(),
                                  tensor.dtype(), false));
  }
  const bool functional = functional_form_fits(op, stack.arguments());
  pass_on(op, keys, stack);
  for (size_t i = 0; i < written.size(); ++i) {
    if (!same_geometry(written[i], places[i]) || written[i].storage() != places[i].storage()) {
      return fail(fmt::format("{}: it changes a tensor's shape or memory", op.name()));
    }
  }
  if (functional) {
    const Tensor& self = written[0];
    return change(self, add_node(op.root(), std::move(arguments), ValueType::of(self)));
  }
  Node node{&op, std::move(arguments), {}};
  record_results(node, stack);
  std::vector<ValueId> changed;
  for (const Tensor& tensor : written) {
    changed.push_back(graph_.add_value(ValueType::of(tensor)));
    node.results.push_back(changed.back());
  }
  graph_.nodes.push_back(std::move(node));
  for (size_t i = 0; i < written.size(); ++i) change(written[i], changed[i]);
  if (op.kind() == OpKind::kDynamic) record_sizes();
}

void Recorder::record_read(const Operator& op, KeySet keys, Stack& stack) {
  HostRead read{.op = &op, .arguments = arguments_of(op, stack.arguments())};
  read.end = graph_.nodes.size();
  pass_on(op, keys, stack);
  for (const Value& result : stack.results()) {
    if (result.is_tensor() || result.is_tensor_list()) {
      return fail(fmt::format("{}: it returns tensors and values on the host", op.name()));
    }
    read.values.push_back(result.own());
  }
  reads_.push_back(std::move(read));
}

void Recorder::record_sizes() {
  const Node& node = graph_.nodes.back();
  HostRead read{.op = node.op, .of_sizes = true};
  read.end = graph_.nodes.size();
  for (const ValueId id : node.results) {
    if (id == kAbsent) continue;
    read.arguments.push_back(tensor_argument(id));
    read.values.push_back(Value(IntList(type_of(graph_, id).sizes)).own());
  }
  reads_.push_back(std::move(read));
}

}  // namespace lockstep::compiler
