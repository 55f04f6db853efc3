#pragma once

#include "configs/load.h"

namespace lockstep::config {

/// What must hold inside the chosen model, and between it and the data, of a config whose values
/// are all set and in range. Throws SourceError.
void check_model(const RunConfig& config, const Origins& origins);

}  // namespace lockstep::config
