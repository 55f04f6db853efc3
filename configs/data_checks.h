#pragma once

#include "configs/load.h"

namespace lockstep::config {

class DataConfig;

/// Checks constraints within the data: paths that must not be empty, files of tokenizers. All
/// values must be set and in range. Throws SourceError.
void check_data(const DataConfig& data, const Origins& origins);

/// Whether some of the data are examples to fine-tune on, by themselves or in a mixture.
bool has_examples(const DataConfig& data);

}  // namespace lockstep::config
