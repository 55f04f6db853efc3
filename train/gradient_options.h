#pragma once

#include <vector>

#include "dist/ddp/reducer.h"
#include "train/step_share.h"

namespace lockstep::config {
class RunConfig;
}
namespace lockstep::nn {
class Module;
}

namespace lockstep::train {

/// Returns the parameters whose gradients are reduced. Throws DTypeError if one is not f32.
std::vector<dist::NamedTensor> trained_parameters(const nn::Module& model);

/// Returns the reducer's options for a run. `group` may be null. Throws ConfigError if
/// reproducibility is BITWISE and there are more ranks than leaves.
dist::ReducerOptions reducer_options(const config::RunConfig& config, const StepShare& share,
                                     const dist::ProcessGroup* group);

}  // namespace lockstep::train
