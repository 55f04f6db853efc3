#include "core/device/kernel_scope.h"

#include "core/base/check.h"
#include "core/base/current_scope.h"
#include "core/base/environment_flag.h"
#include "core/device/active_capture.h"

namespace lockstep {

bool launches_block() {
  static const bool on = environment_flag("LOCKSTEP_LAUNCH_BLOCKING");
  return on;
}

void finish_launch(const OperatorName& op) {
  if (!launches_block()) [[likely]]
    return;
  if (active_capture() != nullptr) return;  // captured work does not run yet
  const Stream stream = kernel_stream();
  try {
    stream.synchronize();
  } catch (const DeviceError& error) {
    throw DeviceError(
        fmt::format("[{}] failed on {}: {}", op.name(), to_string(stream), error.what()));
  }
}

}  // namespace lockstep
