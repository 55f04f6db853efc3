#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compile/pass.h"
#include "core/dispatch/value.h"
#include "core/tensor/tensor.h"

namespace lockstep::compiler {

/// What the calls of one operator are written out as.
struct Decomposition {
  std::string op;  ///< its full name, "glu"
  /// Computes the operator's results from its arguments, in the schema's order, by calls of other
  /// operators. It is called with tensors that have no elements. Empty: the operator is a composite
  /// with a kernel of its own, and its body is that (core/dispatch/decompositions.h).
  std::function<std::vector<Tensor>(std::span<const Value> arguments)> body = {};
};

/// Returns the pass `decompose`, which writes out the calls of the table's operators, so that later
/// passes see what they are made of. Where a body's results have other types than the call's, are
/// arguments, or cannot be recorded, the call stays as it is, and so do calls that write an
/// argument. Bits are those of the bodies. Throws Error for an operator that does not exist, or has
/// no body.
Pass decompose(std::vector<Decomposition> table);

}  // namespace lockstep::compiler
