#include "core/device/kernel_recorder.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/current_scope.h"

namespace lockstep {

KernelRecorder::KernelRecorder() {
  LS_ASSERT(detail::kernel_recorder == nullptr);
  detail::kernel_recorder = this;
}

KernelRecorder::~KernelRecorder() { detail::kernel_recorder = nullptr; }

void KernelRecorder::take(std::unique_ptr<QueuedKernel> kernel) {
  run_here(*kernel);
  kernels_.push_back(std::move(kernel));
}

void run_here(QueuedKernel& kernel) {
  const OperatorScope scope(kernel.op());
  if (!kernel.random()) return kernel.run();
  Generator& generator = default_generator();
  const RandomKey state = generator.state();
  generator.set_state(*kernel.random());
  kernel.run();
  generator.set_state(state);
}

}  // namespace lockstep
