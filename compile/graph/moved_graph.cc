#include "compile/graph/moved_graph.h"

namespace lockstep::compiler {

Graph moved_graph(Graph graph, Device device) {
  graph.buffers.clear();
  for (Node& node : graph.nodes) {
    node.group = -1;
    node.runs_once = false;
    for (NodeArgument& argument : node.arguments) {
      if (argument.constant.tag() == Value::Tag::kDevice) argument.constant = Value(device);
    }
  }
  return graph;
}

}  // namespace lockstep::compiler
