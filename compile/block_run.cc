#include "compile/block_run.h"

#include <algorithm>
#include <map>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/copy.h"

namespace lockstep::compiler {

namespace {

/// Elements of a block: few enough for a handful of tensors to lie in a core's second cache, enough
/// that a call costs little beside its work.
constexpr int64_t kBlock = 1 << 14;

/// The out= form of a functional operator, or null.
const Operator* out_form(const Operator& op) {
  for (const Operator* const other : dispatcher().operators()) {
    if (other->form() == OpForm::kOut && &other->root() == &op.root()) return other;
  }
  return nullptr;
}

Tensor part_of(const Tensor& whole, int64_t first, int64_t length) {
  return alias_tensor(whole, {length}, {1}, whole.storage_offset() + first, whole.dtype(), false);
}

}  // namespace

BlockRun::BlockRun(const Graph& graph, std::span<const Node> nodes,
                   const std::vector<bool>& is_read_later)
    : graph_(graph) {
  std::map<ValueId, size_t> slots;
  std::map<size_t, size_t> last_read;
  for (const Node& node : nodes) {
    const ValueId result = node.results[0];
    const ValueType& type = graph.values[static_cast<size_t>(result)];
    count_ = count_elements(type.sizes);
    Step step;
    step.op = node.op;
    if (is_read_later[static_cast<size_t>(result)]) {
      step.result = result;
      if (const Operator* const out = out_form(*node.op)) {
        step.op = out;
        step.writes_result = true;
      }
    }
    for (const NodeArgument& argument : node.arguments) {
      Operand operand;
      step.constants.push_back(argument.constant);
      if (argument.kind != NodeArgument::Kind::kConstant) {
        operand.value = argument.values[0];
        if (operand.value == kAbsent) {
          operand.kind = Operand::Kind::kAbsent;
        } else if (const auto slot = slots.find(operand.value); slot != slots.end()) {
          operand.kind = Operand::Kind::kSlot;
          operand.slot = slot->second;
          last_read[slot->second] = steps_.size();
        } else {
          const ValueType& read = graph.values[static_cast<size_t>(operand.value)];
          operand.kind = read.sizes.size() == 0 ? Operand::Kind::kWhole : Operand::Kind::kPart;
        }
      }
      step.operands.push_back(operand);
    }
    slots[result] = steps_.size();
    last_read.try_emplace(steps_.size(), steps_.size());
    steps_.push_back(std::move(step));
  }
  for (const auto& [slot, step] : last_read) steps_[step].released.push_back(slot);
}

void BlockRun::run_block(int64_t first, int64_t length, const std::vector<Tensor>& values) const {
  std::vector<Tensor> slots(steps_.size());
  SmallVector<Value, 8> arguments;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    arguments.clear();
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      switch (operand.kind) {
        case Operand::Kind::kConstant:
          arguments.push_back(step.constants[k]);
          break;
        case Operand::Kind::kAbsent:
          arguments.push_back(Value());
          break;
        case Operand::Kind::kWhole:
          arguments.push_back(Value(values[static_cast<size_t>(operand.value)]));
          break;
        case Operand::Kind::kPart:
          arguments.push_back(
              Value(part_of(values[static_cast<size_t>(operand.value)], first, length)));
          break;
        case Operand::Kind::kSlot:
          arguments.push_back(Value(slots[operand.slot]));
          break;
      }
    }
    Tensor place;
    if (step.result != kAbsent) {
      place = part_of(values[static_cast<size_t>(step.result)], first, length);
    }
    if (step.writes_result) arguments.push_back(Value(place));
    Stack stack(std::span<Value>(arguments.data(), arguments.size()));
    step.op->call_boxed(stack);
    if (step.writes_result) {
      slots[i] = std::move(place);
    } else {
      slots[i] = stack.results()[0].take_tensor();
      if (step.result != kAbsent) copy_(place, slots[i]);
    }
    for (const size_t slot : step.released) slots[slot] = Tensor();
  }
}

void BlockRun::run(std::vector<Tensor>& values) const {
  for (const Step& step : steps_) {
    if (step.result == kAbsent) continue;
    const ValueType& type = graph_.values[static_cast<size_t>(step.result)];
    values[static_cast<size_t>(step.result)] =
        empty_strided_tensor(type.sizes, type.strides, type.dtype, type.device);
  }
  const int64_t blocks = (count_ + kBlock - 1) / kBlock;
  parallel_for(0, blocks, 1, [&](int64_t from, int64_t to) {
    // A thread of the pool has a state of its own.
    const NoGradGuard no_grad;
    const AutocastStateGuard no_autocast({});
    for (int64_t block = from; block < to; ++block) {
      const int64_t first = block * kBlock;
      run_block(first, std::min(kBlock, count_ - first), values);
    }
  });
}

}  // namespace lockstep::compiler
