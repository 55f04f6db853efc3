#pragma once

#include <memory>
#include <vector>

#include "core/device/queued_kernel.h"

namespace lockstep {

class KernelRecorder;

namespace detail {
inline thread_local constinit KernelRecorder* kernel_recorder = nullptr;
}  // namespace detail

/// While alive, kernels that this thread queues on streams of the host device run at once and are
/// kept, with the addresses of their tensors, so that they can run again. Not nested.
class KernelRecorder {
 public:
  KernelRecorder();
  ~KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;

  /// The recorder of this thread, or null. For queue_kernel.
  static KernelRecorder* active() noexcept { return detail::kernel_recorder; }
  void take(std::unique_ptr<QueuedKernel> kernel);

  /// What was taken, in order.
  std::vector<std::unique_ptr<QueuedKernel>> finish() { return std::move(kernels_); }

 private:
  std::vector<std::unique_ptr<QueuedKernel>> kernels_;
};

/// Runs a kernel on this thread, with the random numbers that were reserved for it.
void run_here(QueuedKernel& kernel);

}  // namespace lockstep
