#pragma once

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// Puts element-wise operators on contiguous tensors of one size, which follow one another or can
/// be made to, into groups, where the device's backend runs loops apart from their kernels
/// (LoopProgram: the cpu). A group runs on a few elements after the other, with what it computes in
/// between in the cache: one pass over memory instead of one for each operator. The loops, and so
/// the bits, are the kernels'. Operands may be rows that repeat, such as biases, columns of one
/// element for each row, and tensors of one element. Groups that are there stay; fewer than `least`
/// operators are no group. Rows of a table that only the group reads are gathered in it, and random
/// truths are drawn in it (compile/block_filled.h).
Graph fuse_pointwise(Graph graph, size_t least = 2);

/// Puts operators that compute each row of contiguous tensors from the same row of others into
/// groups: reductions, softmax and other operators along the last dimension, norms of it, and the
/// element-wise operators that they are connected with. On the cpu a group runs on some rows after
/// the other (RowGroup), with the operators' own kernels, and so their bits; on a GPU as a kernel
/// that is made of theirs (RowKernelGroup).
Graph fuse_rows(Graph graph);

/// Has element-wise operators read what an `expand` repeated along the last dimension instead of
/// its result, where another operand has the result's sizes: fusion knows such columns.
Graph read_unexpanded(Graph graph);

}  // namespace lockstep::compiler
