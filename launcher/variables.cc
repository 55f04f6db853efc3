#include "launcher/variables.h"

#include "configs/program_variables.h"
#include "configs/variables.h"
#include "core/device/device_runtime.h"

namespace lockstep::launcher {

void check_variables() {
  const config::Variables variables = config::process_variables();
  config::check_program_variables(variables);
  // The host devices read their settings when they are first counted.
  if (variables.contains("LOCKSTEP_HOST")) (void)device_count(DeviceType::kHost);
}

}  // namespace lockstep::launcher
