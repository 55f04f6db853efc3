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

/// What a run sums gradients of. Throws DTypeError for parameters that are not f32.
std::vector<dist::NamedTensor> trained_parameters(const nn::Module& model);

/// How it sums them. `group` may be null. Throws ConfigError where reproducibility BITWISE is asked
/// for with more ranks than leaves.
dist::ReducerOptions reducer_options(const config::RunConfig& config, const StepShare& share,
                                     const dist::ProcessGroup* group);

}  // namespace lockstep::train
