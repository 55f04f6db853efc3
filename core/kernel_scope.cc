#include "core/kernel_scope.h"

#include "core/check.h"
#include "core/environment_flag.h"
#include "core/operator.h"

namespace lockstep {

void finish_launch(const Operator& op) {
  static const bool kBlocking = environment_flag("LOCKSTEP_LAUNCH_BLOCKING");
  if (!kBlocking) [[likely]]
    return;
  try {
    kernel_stream().synchronize();
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("[{}] failed on {}: {}", op.name(),
                                  to_string(kernel_stream().device), error.what()));
  }
}

}  // namespace lockstep
