#include "train/watch/operator_watch.h"

#include <optional>

#include "autograd/grad_mode.h"
#include "core/dispatch/thread_state.h"
#include "core/dispatch/value_tensors.h"

namespace lockstep::train {
namespace {

std::vector<Tensor> written_by(const Operator& op, const Stack& stack) {
  std::vector<Tensor> written;
  const auto add = [&](const Tensor& tensor) { written.push_back(tensor); };
  for (const Value& result : stack.results()) each_defined_tensor(result, add);
  if (!written.empty()) return written;
  const std::vector<Argument>& arguments = op.schema().arguments;
  for (size_t i = 0; i < arguments.size() && i < stack.arguments().size(); ++i) {
    if (arguments[i].written) each_defined_tensor(stack.arguments()[i], add);
  }
  return written;
}

bool names_two_devices(const Stack& stack) {
  std::optional<Device> first;
  bool others = false;
  const auto see = [&](Device device) {
    if (!first) first = device;
    others = others || device != *first;
  };
  for (const Value& argument : stack.arguments()) {
    each_defined_tensor(argument, [&](const Tensor& tensor) { see(tensor.device()); });
    if (argument.tag() == Value::Tag::kDevice) see(argument.to_device());
  }
  return others;
}

/// While alive, this thread's operators reach no mode.
class Unwatched {
 private:
  ThreadStateGuard state_{ThreadState::capture().without_modes()};
  NoGradGuard no_grad_;
};

}  // namespace

void OperatorWatch::begin(const StepPart& part) {
  part_ = part;
  begun_ = true;
  number_ = 0;
  counts_.clear();
  begin_part();
}

/// A copy_ from another device is made of two calls: _to_copy, and copy_ from what that gave.
bool OperatorWatch::moves_between_devices(const Operator& op, const Stack& stack) const {
  const std::string& root = op.root().name();
  if (root == "_to_copy") return names_two_devices(stack);
  if (root != "copy") return false;
  const Value& source = stack.arguments()[1];
  return names_two_devices(stack) ||
         (source.is_tensor() && moved_ != nullptr && source.tensor().storage().get() == moved_);
}

void OperatorWatch::note_move(const Operator& op, const Stack& stack) {
  moved_ = nullptr;
  if (op.root().name() != "_to_copy" || !stack.results()[0].is_tensor()) return;
  moved_ = stack.results()[0].tensor().storage().get();
}

void OperatorWatch::call(const Operator& op, KeySet keys, Stack& stack) {
  if (!begun_ || op.kind() == OpKind::kView || op.allocates_only()) {
    return pass_on(op, keys, stack);
  }
  if (moves_between_devices(op, stack)) {
    pass_on(op, keys, stack);
    return note_move(op, stack);
  }
  moved_ = nullptr;
  const Call call{op, ++counts_[op.name()], number_++};
  {
    const Unwatched own_calls;
    before(call, stack);
  }
  pass_on(op, keys, stack);
  const Unwatched own_calls;
  after(call, written_by(op, stack));
}

}  // namespace lockstep::train
