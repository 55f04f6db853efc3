#pragma once

#include <string>
#include <vector>

#include "compile/graph/graph.h"
#include "compile/pass.h"

namespace lockstep::compiler {

/// Leaves out nodes whose results nothing reads. Those that draw random numbers stay: the numbers
/// that others draw depend on them.
Graph remove_dead_code(Graph graph);

/// Leaves out nodes that compute what an earlier one computes: the same operator on the same
/// arguments. Those that draw random numbers stay, and so do those whose results are outputs or
/// share memory with one, because the caller may change an output.
Graph merge_common_subexpressions(Graph graph);

/// Has nodes that depend on constants alone run once, when an Interpreter is made, as far as what
/// they make is at most 16 MiB and does not reach the caller, who might change it.
Graph fold_constants(Graph graph);

/// Leaves out casts to a dtype and back where no element can change: to a dtype that holds all
/// numbers of the first one, and for floats only where the first tensor was rounded to its dtype,
/// because a cast may change the bits of a NaN that was not.
Graph remove_casts(Graph graph);

/// Which values are outputs, or share memory with one as far as views of the graph make them: a
/// caller may change them.
std::vector<bool> reach_the_caller(const Graph& graph);

/// Runs the passes in turn, checks the graph behind each, and appends what it did to `log`, unless
/// that is null or it did nothing: "fuse_pointwise: 2 groups of 9 nodes". Throws Error, naming the
/// pass, when a graph is not sound.
Graph run_passes(Graph graph, const std::vector<Pass>& passes,
                 std::vector<std::string>* log = nullptr);

}  // namespace lockstep::compiler
