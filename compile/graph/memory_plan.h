#pragma once

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// Has results that live within a run, one after the other, share buffers (Graph::buffers): one
/// allocation serves several of them. These are results of structured operators and of groups,
/// which nothing but such, and views, reads. Outputs, what they are views of, and what is written
/// into inputs have memory of their own.
///
/// A run allocates a buffer for its first value, and frees it behind the last. Where values are of
/// other sizes, or some time passes between them, a buffer holds memory that nothing lives in: it
/// is shared only as far as a run needs no more memory at its peak than with an allocation for each
/// result.
Graph plan_memory(Graph graph);

/// Memory that several results have in turn.
struct PlannedBuffer {
  Device device;
  size_t bytes = 0;
  size_t values = 0;     ///< how many have it
  size_t last_node = 0;  ///< behind which it is not read any more
};
/// The buffers of a graph, by their numbers; none for a graph without a plan.
std::vector<PlannedBuffer> planned_buffers(const Graph& graph);

/// Throws Error unless values that share a buffer are results that may, on one device, and live one
/// after the other.
void check_buffers(const Graph& graph);

}  // namespace lockstep::compiler
