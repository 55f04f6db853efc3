#include "core/dispatch/queued_program.h"

#include "core/base/current_scope.h"
#include "core/base/small_vector.h"

namespace lockstep {

namespace {

constexpr int64_t kStrideOfRow = 1;

class FusedName final : public OperatorName {
 public:
  FusedName() { set_name("fused"); }
};
const FusedName kFused;

/// Elements from the first to the last that a slot reads or writes.
int64_t length_of(const LoopProgram::Slot& slot, int64_t count) {
  using Place = LoopProgram::Place;
  switch (slot.place) {
    case Place::kNumber:
      return 1;
    case Place::kRow:
      return slot.period;
    case Place::kColumn:
      return count / slot.period;
    case Place::kRows:
      return (count / slot.period - 1) * slot.stride + slot.period;
    default:
      return count;
  }
}

}  // namespace

QueuedProgram::QueuedProgram(const LoopProgram& program, int64_t count,
                             std::span<void* const> memory, std::span<const RandomKey> draws,
                             LoopKernel kernel)
    : QueuedKernel(kFused),
      program_(program),
      count_(count),
      lengths_(memory.size()),
      draws_(draws.begin(), draws.end()),
      kernel_(kernel) {
  for (size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] == nullptr) continue;
    lengths_[i] = length_of(program.slots[i], count);
    TensorArg tensor;
    tensor.address = memory[i];
    tensor.size_data = &lengths_[i];
    tensor.stride_data = &kStrideOfRow;
    tensor.numel = lengths_[i];
    tensor.rank = 1;
    tensor.dtype = program.slots[i].dtype;
    tensor.contiguous = true;
    accesses_.push_back({i, tensor});
  }
}

void QueuedProgram::run() {
  SmallVector<void*, 16> memory;
  for (size_t i = 0; i < program_.slots.size(); ++i) memory.push_back(nullptr);
  for (const Access& access : accesses_) memory[access.slot] = access.tensor.address;
  loop_backend(DeviceType::kCPU)
      ->run(program_, count_, std::span<void* const>(memory.data(), memory.size()), draws_,
            kernel_);
}

void QueuedProgram::each_access(FunctionRef<void(const TensorArg&, bool)> visit) const {
  for (const Access& access : accesses_) {
    visit(access.tensor, program_.slots[access.slot].place == LoopProgram::Place::kResult);
  }
}

void QueuedProgram::draw_anew() {
  for (RandomKey& key : draws_) key = default_generator().next_call();
}

}  // namespace lockstep
