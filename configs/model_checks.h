#pragma once

#include "configs/load.h"

namespace lockstep::config {

/// Checks constraints within the chosen model, and between it and the data. All values must be set
/// and in range. Throws SourceError.
void check_model(const RunConfig& config, const Origins& origins);

}  // namespace lockstep::config
