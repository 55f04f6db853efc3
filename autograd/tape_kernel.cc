// The kernel at Key::kAutograd of all operators. It is called when an argument requires grad, runs
// the operator below the key, and attaches a node to the results that carry a gradient.

#include "autograd/in_place.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/value_tensors.h"

namespace lockstep {

namespace {

/// Node of an operator without derivative that is called in a recorded backward: the first
/// derivative works, and the error comes only if the second one is computed.
class MissingDerivative final : public Node {
 public:
  explicit MissingDerivative(const Operator& op) : op_(op.root()) {}
  Gradients apply(std::span<Tensor>, const BackwardCall&) override {
    throw AutogradError(fmt::format("[{}] has no derivative: {}. Do not differentiate through it.",
                                    op_.name(), op_.derivative().not_differentiable_reason));
  }
  std::string name() const override { return backward_name(op_); }

 private:
  const Operator& op_;
};

/// Returns a mask of the results that carry a gradient. The one-gradient form of a derivative
/// belongs to one result.
uint64_t differentiable_outputs(const Derivative& derivative) {
  const uint64_t mask = derivative.differentiable_outputs;
  return derivative.of_many != nullptr ? mask : mask & (~mask + 1);
}

/// Fills in edges, geometry and the arguments of other types. Returns which tensor arguments (lists
/// count once) have a part that requires grad.
uint64_t take_arguments(const Operator& op, std::span<const Value> values, OpNode& node) {
  const std::vector<Argument>& arguments = op.root().schema().arguments;
  uint64_t needed = 0;
  size_t ordinal = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = values[i];
    if (arguments[i].type.base != BaseType::kTensor) {
      node.keep_argument(i, value);
      continue;
    }
    const size_t first = node.tensor_count();
    if (value.is_none()) node.add_tensor(Tensor());
    each_tensor(value, [&](const Tensor& tensor) { node.add_tensor(tensor); });
    if (node.has_edge_from(first)) needed |= uint64_t{1} << ordinal;
    ++ordinal;
  }
  return needed;
}

/// A result to save after the operator has run, and its index among the node's saved tensors.
struct PendingSave {
  size_t place;
  size_t output;
};
using PendingSaves = SmallVector<PendingSave, 2>;

/// Saves the arguments that a needed gradient reads, in the order of the block; the others stay
/// undefined. `self`, the tensor about to be overwritten (null if none), is saved as a clone.
PendingSaves save_arguments(const Derivative& derivative, uint64_t needed,
                            std::span<const Value> values, const Tensor* self, OpNode& node) {
  PendingSaves pending;
  for (const Save& save : derivative.saves) {
    if ((save.needed_for & needed) == 0) {
      node.save(SavedTensor());
    } else if (save.is_output) {
      pending.push_back({node.save(SavedTensor()), save.index});
    } else if (values[save.index].is_none()) {
      node.save(SavedTensor());
    } else {
      each_tensor(values[save.index], [&](const Tensor& tensor) {
        if (self == nullptr || !tensor.defined() || !(self->storage() == tensor.storage())) {
          node.save(SavedTensor::argument(tensor));
        } else if (tensor.is_same(*self)) {
          node.save(SavedTensor::argument(tensor.clone()));
        } else {
          node.save(SavedTensor::overwritten(tensor));
        }
      });
    }
  }
  return pending;
}

/// Makes the node the history of every result that carries a gradient. Numbers count as results, a
/// list as several. The last such result takes the caller's reference, which saves two atomic
/// operations.
void attach(const Derivative& derivative, std::span<const Value> results, Ref<OpNode>&& node) {
  const uint64_t mask = differentiable_outputs(derivative);
  TensorImpl* carrier = nullptr;
  uint32_t carrier_nr = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool differentiable = ((mask >> i) & 1) != 0;
    if (!results[i].is_tensor() && !results[i].is_tensor_list()) node->add_output();
    each_tensor(results[i], [&](const Tensor& tensor) {
      const bool carries = differentiable && tensor.defined() && is_floating(tensor.dtype());
      if (!carries) {
        node->add_output();
        return;
      }
      if (carrier != nullptr) set_history(*carrier, node, carrier_nr);
      carrier = tensor.impl();
      carrier_nr = node->add_output(*carrier);
    });
  }
  if (carrier != nullptr) set_history(*carrier, std::move(node), carrier_nr);
}

void record(const Operator& op, KeySet below, Stack& stack) {
  const Derivative& derivative = op.derivative();
  const std::span<const Value> values = stack.arguments();
  const int written = op.alias_argument();
  const Tensor* self = nullptr;
  if (written >= 0) {
    self = &values[static_cast<size_t>(written)].tensor();
    LS_CHECK(op.form() != OpForm::kOut, AutogradError,
             "[{}] out= cannot be recorded: expected no argument that requires grad. Use the form "
             "that returns a new tensor, or a NoGradGuard.",
             op.name());
    prepare_in_place(op, *self);
  }
  // The node is not reachable before the operator has run, so an exception has no effect.
  Ref<OpNode> node = make_ref<OpNode>(op.root());
  const uint64_t needed = take_arguments(op, values, *node);
  const PendingSaves pending = save_arguments(derivative, needed, values, self, *node);
  op.redispatch_boxed(below, stack);
  if (needed == 0) return;
  OpNode& kept = *node;  // owned by a result, or still by this function
  if (self == nullptr) {
    attach(derivative, stack.results(), std::move(node));
  } else if (op.kind() == OpKind::kView) {
    reshape_history(*self, node);
  } else if (is_floating(self->dtype())) {
    rebase_history(*self, node);
  }
  for (const PendingSave& save : pending) {
    const Value& result = stack.results()[save.output];
    if (result.is_none()) continue;
    kept.set_saved(save.place,
                   SavedTensor::result(result.tensor(), static_cast<uint32_t>(save.output)));
  }
}

/// Throws AutogradError if a written argument requires grad and its change cannot be recorded.
void check_unrecorded_writes(const Operator& op, std::span<const Value> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!op.schema().arguments[i].written) continue;
    const std::string& reason = op.derivative().not_differentiable_reason;
    each_tensor(values[i], [&](const Tensor& tensor) {
      LS_CHECK(
          !tensor.requires_grad(), AutogradError,
          "[{}] changes {}, which requires grad, and has no derivative ({}). Use a NoGradGuard "
          "or detach() it.",
          op.name(), to_string(tensor), reason.empty() ? "none is declared" : reason);
    });
  }
}

void run_without_derivative(const Operator& op, KeySet below, Stack& stack) {
  const std::string& reason = op.derivative().not_differentiable_reason;
  check_unrecorded_writes(op, stack.arguments());
  op.redispatch_boxed(below, stack);
  if (op.alias_argument() >= 0) return;
  const bool part_of_backward = op.root().schema().name.ends_with("_backward");
  for (const Value& result : stack.results()) {
    each_tensor(result, [&](const Tensor& tensor) {
      // Drops the base: in-place changes of this result are recorded as if it were not a view.
      tensor.impl()->base.reset();
      if (!is_floating(tensor.dtype())) return;
      LS_CHECK(!reason.empty(), AutogradError,
               "[{}] an argument requires grad, and no derivative is declared. Call it under a "
               "NoGradGuard, or with detached arguments.",
               op.name());
      if (!part_of_backward) return;
      Ref<Node> missing = make_ref<MissingDerivative>(op);
      for (const Value& value : stack.arguments()) {
        each_tensor(value,
                    [&](const Tensor& argument) { missing->add_edge(gradient_edge(argument)); });
      }
      const uint32_t nr = missing->add_output(*tensor.impl());
      set_history(*tensor.impl(), std::move(missing), nr);
    });
  }
}

void tape_kernel(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet below = keys & KeySet::below(Key::kAutograd);
  if (below.empty()) op.throw_missing(below);
  if (op.derivative().exists()) {
    record(op, below, stack);
  } else {
    run_without_derivative(op, below, stack);
  }
}

const Registration kTape =
    dispatcher().register_fallback(Key::kAutograd, {&tape_kernel, {__FILE__, __LINE__}});

}  // namespace

}  // namespace lockstep
