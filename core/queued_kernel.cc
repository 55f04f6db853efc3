#include "core/queued_kernel.h"

#include <string_view>
#include <utility>

#include "core/device_runtime.h"
#include "core/environment_flag.h"
#include "core/stream_sanitizer.h"

namespace lockstep {

namespace {

bool waits_for_each() {
  static const bool on = environment_flag("LOCKSTEP_LAUNCH_BLOCKING");
  return on;
}

}  // namespace

void queue_kernel(const Stream& stream, std::unique_ptr<QueuedKernel> kernel) {
  DeviceRuntime& runtime = require_runtime(stream.device);
  if (stream_sanitizer::enabled()) stream_sanitizer::on_kernel(stream, *kernel);
  runtime.launch(stream, std::move(kernel));
  if (waits_for_each()) [[unlikely]] {
    stream.synchronize();
  }
}

}  // namespace lockstep
