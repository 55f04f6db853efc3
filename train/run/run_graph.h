#pragma once

#include <string>

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Returns the autograd graph of one micro-batch's loss for a resolved config, in Graphviz's DOT
/// language, with parameters by name. Equal blocks are folded (GraphToDotOptions) unless
/// `every_block`. Runs on the meta device: no file is read and tensors have no memory. Advances the
/// calling thread's default generator.
std::string run_graph_dot(const config::RunConfig& config, bool every_block);

}  // namespace lockstep::train
