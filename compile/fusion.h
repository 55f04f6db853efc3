#pragma once

#include "compile/graph.h"

namespace lockstep::compiler {

/// Puts element-wise operators on contiguous tensors of one size on the cpu, which follow one
/// another or can be made to, into groups. A group runs on a few thousand elements after the other,
/// with what it computes in between in the cache: one pass over memory instead of one for each
/// operator. The kernels, and so the bits, are the same. A tensor of one element may be an operand.
Graph fuse_pointwise(Graph graph);

}  // namespace lockstep::compiler
