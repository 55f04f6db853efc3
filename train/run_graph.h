#pragma once

#include <string>

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What the loss of one micro-batch of a resolved config's run records for backward, in Graphviz's
/// DOT language, parameters by their names. Runs on the meta device: no file is read and no tensor
/// has memory. The calling thread's default generator moves on.
std::string run_graph_dot(const config::RunConfig& config);

}  // namespace lockstep::train
