#pragma once

#include <vector>

#include "core/dispatch/operator.h"

namespace lockstep {

// Decompositions of operators. The body of a composite is its decomposition; it stays available
// where a kernel was registered over it, for program transformations that need the operators below.

bool has_decomposition(const Operator& op);

/// Every operator that has a decomposition, sorted by name.
std::vector<const Operator*> decompositions();

/// Runs the decomposition of `op`. `stack` holds every argument in schema order and takes the
/// results. The operators inside are dispatched as usual: autograd records them and modes see them.
/// Throws DispatchError when `op` has no decomposition.
void decompose(const Operator& op, Stack& stack);

}  // namespace lockstep
