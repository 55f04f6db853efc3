#pragma once

#include <cstdint>

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Builds what a run of `ranks` ranks on a resolved config begins with, on this machine, as its
/// first rank does: device, model with the weights that it names, data with its first batch, and
/// optimizer. Throws the error with which training would refuse them. Reads all of a text, and may
/// store its tokens in the config's cache, as training does.
void check_parts(const config::RunConfig& config, int64_t ranks);

}  // namespace lockstep::train
