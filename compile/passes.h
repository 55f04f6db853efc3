#pragma once

#include <string>
#include <vector>

#include "compile/graph.h"
#include "compile/pass.h"

namespace lockstep::compiler {

/// Leaves out nodes whose results nothing reads. Those that draw random numbers stay: the numbers
/// that others draw depend on them.
Graph remove_dead_code(Graph graph);

/// Leaves out nodes that compute what an earlier one computes: the same operator on the same
/// arguments. Those that draw random numbers stay, and so do those whose results are outputs or
/// share memory with one, because the caller may change an output.
Graph merge_common_subexpressions(Graph graph);

/// Runs the passes in turn, checks the graph behind each, and appends "name: 12 -> 10 nodes" for
/// each that changed their number to `log`, unless that is null. Throws Error, naming the pass,
/// when a graph is not sound.
Graph run_passes(Graph graph, const std::vector<Pass>& passes,
                 std::vector<std::string>* log = nullptr);

}  // namespace lockstep::compiler
