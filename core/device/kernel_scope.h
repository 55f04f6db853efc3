#pragma once

#include "core/base/scoped_value.h"
#include "core/tensor/stream.h"

namespace lockstep {

class OperatorName;

namespace detail {
inline thread_local constinit Device thread_kernel_device{};
}  // namespace detail

/// The stream that a kernel of an asynchronous device which runs on this thread puts its work on:
/// the thread's current one of the device that the operator was called on.
inline Stream kernel_stream() noexcept { return current_stream(detail::thread_kernel_device); }

/// While alive, kernels that this thread calls work for `device`.
class KernelScope {
 public:
  explicit KernelScope(Device device) noexcept : device_(detail::thread_kernel_device, device) {}

 private:
  ScopedValue<Device> device_;
};

/// Whether LOCKSTEP_LAUNCH_BLOCKING=1: every call then waits for what it queued.
bool launches_block();

/// With it, waits for what a kernel put on `kernel_stream()`: an error of it is thrown here and
/// names `op`.
void finish_launch(const OperatorName& op);

}  // namespace lockstep
