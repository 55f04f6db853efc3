#include "autograd/op_node.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/base/scoped_value.h"
#include "core/dispatch/arrived_gradient.h"

namespace lockstep {

namespace {

/// "result", "result1", ..., or the name that the schema gives.
std::string result_name(const Schema& schema, size_t index) {
  const std::string& name = schema.returns[index].name;
  if (!name.empty()) return name;
  return schema.returns.size() == 1 ? "result" : fmt::format("result{}", index);
}

}  // namespace

InputMeta& OpNode::add_input(Edge edge) {
  const size_t i = inputs_.size();
  const bool has_edge = static_cast<bool>(edge);
  if (has_edge && i < 64) needs_ |= uint64_t{1} << i;
  add_edge(std::move(edge));
  InputMeta& meta = inputs_.emplace_back();
  meta.has_edge = has_edge;
  return meta;
}

void OpNode::add_tensor(const Tensor& tensor) {
  if (tensor.defined()) {
    add_input(gradient_edge(tensor)).describe(*tensor.impl());
  } else {
    add_input(Edge());
  }
}

void OpNode::add_tensor(Edge edge, const InputMeta& meta) {
  InputMeta& own = add_input(std::move(edge));
  const bool has_edge = own.has_edge;
  own = meta;
  own.has_edge = has_edge;
}

bool OpNode::has_edge_from(size_t first) const noexcept {
  if (first < 64 && (needs_ >> first) != 0) return true;
  for (size_t i = std::max<size_t>(first, 64); i < inputs_.size(); ++i) {
    if (inputs_[i].has_edge) return true;
  }
  return false;
}

void OpNode::keep_argument(size_t i, const Value& value) {
  while (arguments_.size() < i) arguments_.emplace_back();
  arguments_.emplace_back(value.own());
}

class OpNode::Memory final : public SavedMemory {
 public:
  Memory(OpNode& node, std::span<const Tensor> unpacked) : node_(node), unpacked_(unpacked) {}

  Tensor take(size_t i) override {
    Tensor taken = node_.saved_[i].take(unpacked_[i]);
    node_.released_ |= taken.defined();
    return taken;
  }

 private:
  OpNode& node_;
  std::span<const Tensor> unpacked_;
};

Gradients OpNode::apply_as(Node* owner, std::span<Tensor> grads, const BackwardCall& call) {
  LS_CHECK(
      !released_, AutogradError,
      "[{}] the tensors it saved were freed, because a backward already ran through it: expected "
      "one backward per graph. Pass retain_graph to the first, or compute the result again.",
      name());
  const Derivative& derivative = op_.derivative();
  LS_CHECK(derivative.exists(), AutogradError, "[{}] has no derivative any more: {}.", name(),
           derivative.not_differentiable_reason);
  SmallVector<Tensor, 4> saved;
  for (const SavedTensor& tensor : saved_) saved.push_back(tensor.unpack(op_.name(), owner));
  // A batched gradient cannot be written into memory that has no batch.
  const bool batched = std::any_of(grads.begin(), grads.end(), [](const Tensor& grad) {
    return grad.defined() && grad.key_set().has(Key::kVmap);
  });
  const bool can_take = call.frees_saved && !is_grad_enabled() && !batched;
  Memory memory(*this, saved);
  VjpContext context(saved, arguments_, inputs_, needs_ & call.needs, call.destinations,
                     derivative.data, can_take ? &memory : nullptr);
  // The edges of another owner are not those of this node's arguments.
  const ScopedValue<detail::ArrivedGradients*> offered(
      detail::arrived_gradients, owner == this ? detail::arrived_gradients : nullptr);
  if (derivative.of_many != nullptr) return derivative.of_many(context, grads);
  for (Tensor& grad : grads) {
    if (!grad.defined()) continue;
    const Tensor only = std::move(grad);
    return derivative.of_one(context, only);
  }
  return {};
}

void OpNode::release_saved() {
  for (const SavedTensor& tensor : saved_) released_ |= tensor.defined();
  saved_.clear();
}

std::vector<SavedTensorInfo> OpNode::saved_tensors() const {
  const Schema& schema = op_.schema();
  const SmallVector<Save, 4>& saves = op_.derivative().saves;
  std::vector<SavedTensorInfo> infos;
  // Each saved place is one tensor, except for a list argument; a block saves at most one list.
  const size_t in_list = saved_.size() + 1 - std::min(saves.size(), saved_.size() + 1);
  size_t place = 0;
  for (const Save& save : saves) {
    const bool list = !save.is_output && schema.arguments[save.index].type.list;
    const size_t count = list ? in_list : 1;
    for (size_t k = 0; k < count && place < saved_.size(); ++k, ++place) {
      const SavedTensor& saved = saved_[place];
      if (!saved.defined()) continue;
      SavedTensorInfo& info = infos.emplace_back();
      info.name =
          save.is_output ? result_name(schema, save.index) : schema.arguments[save.index].name;
      if (list) info.name += fmt::format("[{}]", k);
      info.tensor = saved.peek();
      if (info.tensor.defined()) info.bytes = info.tensor.nbytes();
    }
  }
  return infos;
}

Tensor OpNode::destination_through(const Tensor& place) const {
  const Schema& schema = op_.schema();
  if (op_.kind() != OpKind::kView || schema.returns[0].type.list) return {};
  // The derivative of a view of all elements is the inverse view, which copies nothing. as_strided
  // is excluded: its offset and strides refer to the storage of its own argument.
  if (count_elements(outputs()[0].sizes) != place.numel() || schema.name == "as_strided") return {};
  SmallVector<Value, 6> arguments(arguments_);
  while (arguments.size() < schema.arguments.size()) arguments.emplace_back();
  arguments[0] = Value(place);
  Stack stack(std::span<Value>(arguments.data(), arguments.size()));
  op_.call_boxed(stack);
  return stack.results()[0].take_tensor();
}

}  // namespace lockstep
