// Programs of element-wise loops on the host device: the cpu's, queued.

#include "core/device/kernel_scope.h"
#include "core/device/queued_kernel.h"
#include "core/dispatch/element_loop.h"
#include "core/dispatch/queued_program.h"

namespace lockstep::host {

namespace {

const LoopBackend& of_cpu() { return *loop_backend(DeviceType::kCPU); }

void run_queued(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                std::span<const RandomKey> draws, LoopKernel kernel) {
  queue_kernel(kernel_stream(),
               std::make_unique<QueuedProgram>(program, count, memory, draws, kernel));
}

KernelTrial try_behind(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                       std::span<const RandomKey> draws, LoopKernel kernel) {
  kernel_stream().synchronize();  // operands may still be on their way
  return of_cpu().try_kernel(program, count, memory, draws, kernel);
}

[[maybe_unused]] const bool kRegistered = [] {
  register_loop_backend(
      DeviceType::kHost,
      {.run = &run_queued,
       .source = [](const LoopProgram& program) { return of_cpu().source(program); },
       .try_kernel = &try_behind,
       .kernels_of = DeviceType::kCPU,
       .gathers = false});
  return true;
}();

}  // namespace

}  // namespace lockstep::host
