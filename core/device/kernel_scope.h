#pragma once

#include "core/base/scoped_value.h"
#include "core/tensor/stream.h"

namespace lockstep {

class OperatorName;

namespace detail {
inline thread_local constinit Device thread_kernel_device{};
}  // namespace detail

/// The stream on which kernels called by this thread queue their work on an asynchronous device:
/// the thread's current stream of the device that the operator was called on.
inline Stream kernel_stream() noexcept { return current_stream(detail::thread_kernel_device); }

/// While alive, kernels that this thread calls run on `device`.
class KernelScope {
 public:
  [[nodiscard]] explicit KernelScope(Device device) noexcept
      : device_(detail::thread_kernel_device, device) {}

 private:
  ScopedValue<Device> device_;
};

/// Whether LOCKSTEP_LAUNCH_BLOCKING=1, which makes every call wait for the work it queued.
bool launches_block();

/// If launches_block(), waits for the work on `kernel_stream()` and throws its error, naming `op`.
void finish_launch(const OperatorName& op);

}  // namespace lockstep
