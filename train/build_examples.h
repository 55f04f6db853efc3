#pragma once

#include <memory>

#include "train/build_data.h"

namespace lockstep::train {

/// Builds the source of a resolved `data` message that has examples. Errors are those of
/// build_data.
std::unique_ptr<TokenSource> build_examples(const config::DataConfig& data,
                                            const DataRequest& request);

}  // namespace lockstep::train
