#pragma once

#include "configs/load.h"

namespace lockstep::config {

/// What must hold inside the optimizer, and between it and the rest, of a config whose values are
/// all set and in range. Throws SourceError.
void check_optimizer(const RunConfig& config, const Origins& origins);

}  // namespace lockstep::config
