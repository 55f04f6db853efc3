#include "core/device/queued_kernel.h"

#include <utility>

#include "core/device/device_runtime.h"
#include "core/device/kernel_recorder.h"
#include "core/device/kernel_scope.h"
#include "core/device/stream_sanitizer.h"

namespace lockstep {

void queue_kernel(const Stream& stream, std::unique_ptr<QueuedKernel> kernel) {
  if (KernelRecorder* const recorder = KernelRecorder::active()) [[unlikely]] {
    return recorder->take(std::move(kernel));
  }
  DeviceRuntime& runtime = require_runtime(stream.device);
  if (stream_sanitizer::enabled()) stream_sanitizer::on_kernel(stream, *kernel);
  runtime.launch(stream, std::move(kernel));
  if (launches_block()) [[unlikely]] {
    stream.synchronize();
  }
}

}  // namespace lockstep
