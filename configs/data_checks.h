#pragma once

#include "configs/load.h"

namespace lockstep::config {

class DataConfig;

/// Checks constraints within the data: paths that must not be empty, files of tokenizers. All
/// values must be set and in range. Throws SourceError.
void check_data(const DataConfig& data, const Origins& origins);

}  // namespace lockstep::config
