#pragma once

#include "configs/load.h"

namespace lockstep::config {

/// Checks constraints within the optimizer, and between it and the rest of the config. All values
/// must be set and in range. Throws SourceError.
void check_optimizer(const RunConfig& config, const Origins& origins);

/// Checks constraints within the schedule, and between it and the rest. Throws SourceError.
void check_schedule(const RunConfig& config, const Origins& origins);

}  // namespace lockstep::config
