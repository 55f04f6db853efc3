#pragma once

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// The graph as single calls that make what they make on another device, each time that it runs:
/// without groups, buffers and nodes that run once. Types of values stay.
Graph moved_graph(Graph graph, Device device);

}  // namespace lockstep::compiler
