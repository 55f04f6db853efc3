#pragma once

#include "launcher/launch/launch_options.h"

namespace lockstep::config {
class LaunchConfig;
}

namespace lockstep::launcher {

/// Fills options that the command line did not set from a run's config. The config's hosts are used
/// only if no program of the command line has hosts. Throws ConfigError naming the field.
void apply_launch_config(const config::LaunchConfig& config, LaunchOptions& options);

}  // namespace lockstep::launcher
