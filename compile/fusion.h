#pragma once

#include "compile/graph.h"

namespace lockstep::compiler {

/// Puts element-wise operators on contiguous tensors of one size, which follow one another or can
/// be made to, into groups, where the device's backend runs loops apart from their kernels
/// (LoopProgram: the cpu). A group runs on a few elements after the other, with what it computes in
/// between in the cache: one pass over memory instead of one for each operator. The loops, and so
/// the bits, are the kernels'. Operands may be rows that repeat, such as biases, and tensors of one
/// element.
Graph fuse_pointwise(Graph graph);

}  // namespace lockstep::compiler
