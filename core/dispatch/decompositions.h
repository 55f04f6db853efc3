#pragma once

#include <vector>

#include "core/dispatch/operator.h"

namespace lockstep {

// What operators are made of. A composite's body is its decomposition; it stands there even where a
// kernel was registered over it, for whoever rewrites programs or wants the plain operators below.

bool has_decomposition(const Operator& op);

/// Every operator that has one, by name.
std::vector<const Operator*> decompositions();

/// Runs the body with arguments in schema order, every one given; results land in `stack`. The
/// operators inside are called as usual: recorded, seen by modes. Throws DispatchError when there
/// is none.
void decompose(const Operator& op, Stack& stack);

}  // namespace lockstep
