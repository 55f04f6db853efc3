#pragma once

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// Gives what the nodes make the types that their operators' rules give for those of the inputs, by
/// a run without elements. Devices stay. Throws Error where a rule refuses the sizes, an operator
/// has none, or a dtype would be another.
void infer_types(Graph& graph);

}  // namespace lockstep::compiler
