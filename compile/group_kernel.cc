#include "compile/group_kernel.h"

#include "compile/native/kernel_builder.h"

namespace lockstep::compiler {

GroupKernel::GroupKernel(const GroupKernel& alike) { *this = alike; }

GroupKernel& GroupKernel::operator=(const GroupKernel& alike) {
  if (this == &alike) return *this;
  kernel_ = alike.kernel_;
  trial_.store(alike.trial_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  was_there_.store(alike.was_there_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return *this;
}

void GroupKernel::request(NativeSource source) {
  kernel_ = compiler::request_kernel(std::move(source));
}

LoopKernel GroupKernel::choose(FunctionRef<KernelTrial(LoopKernel)> attempt) const {
  if (!has_run_.load(std::memory_order_relaxed)) has_run_.store(true, std::memory_order_relaxed);
  const LoopKernel made = kernel_ ? kernel_->get() : nullptr;
  if (made == nullptr) return nullptr;
  KernelTrial trial = trial_.load(std::memory_order_relaxed);
  if (trial == KernelTrial::kNone) {
    trial = attempt(made);
    trial_.store(trial, std::memory_order_relaxed);
    was_there_.store(true, std::memory_order_relaxed);
  }
  return trial == KernelTrial::kFaster ? made : nullptr;
}

bool GroupKernel::is_settled() const {
  if (kernel_ == nullptr || !has_run_.load(std::memory_order_relaxed)) return true;
  return kernel_->is_done() &&
         (kernel_->get() == nullptr || was_there_.load(std::memory_order_relaxed));
}

std::string GroupKernel::refusal() const {
  if (trial_.load(std::memory_order_relaxed) == KernelTrial::kOtherBits) {
    return "the kernel of the " + kernel_->source().what + " computes other bits";
  }
  return kernel_ ? kernel_->failure() : std::string();
}

}  // namespace lockstep::compiler
