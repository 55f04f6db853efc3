#pragma once

#include <string>
#include <vector>

#include "compile/graph/graph_export.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Returns the autograd graph of one micro-batch's loss for a resolved config, in Graphviz's DOT
/// language, with parameters by name. Equal blocks are folded (GraphToDotOptions) unless
/// `every_block`. Runs on the meta device: no file is read and tensors have no memory. Advances the
/// calling thread's default generator.
std::string run_graph_dot(const config::RunConfig& config, bool every_block);

/// Returns what one micro-batch's forward and backward passes record of a resolved config's blocks
/// where they are compiled (docs/compile.md), whether or not the config asks for that. Runs on the
/// cpu, with fresh weights and without data. Throws ConfigError, with the reason, if no block can
/// be compiled. Advances the calling thread's default generator.
std::vector<compiler::NamedGraph> compiled_graphs(const config::RunConfig& config);

}  // namespace lockstep::train
