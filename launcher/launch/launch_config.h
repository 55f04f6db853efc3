#pragma once

#include "launcher/launch/launch_options.h"

namespace lockstep::config {
class LaunchConfig;
}

namespace lockstep::launcher {

/// Sets what the command line did not say to what a run's config does. Hosts of the config count
/// where no program of the command line has any. Throws ConfigError naming the field.
void apply_launch_config(const config::LaunchConfig& config, LaunchOptions& options);

}  // namespace lockstep::launcher
