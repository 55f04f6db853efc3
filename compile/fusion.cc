#include "compile/fusion.h"

#include "compile/loop_group.h"

namespace lockstep::compiler {

namespace {

/// The number of elements that the node computes one by one, or 0.
int64_t pointwise_count(const Graph& graph, const Node& node) {
  if (!loop_of(graph, node)) return 0;
  return count_elements(graph.values[static_cast<size_t>(node.results[0])].sizes);
}

}  // namespace

Graph fuse_pointwise(Graph graph) {
  const size_t count = graph.nodes.size();
  std::vector<int64_t> elements(count);
  // The node that makes a value; inputs are there before all nodes.
  std::vector<std::ptrdiff_t> maker(graph.values.size(), -1);
  for (size_t i = 0; i < count; ++i) {
    elements[i] = pointwise_count(graph, graph.nodes[i]);
    for (const ValueId id : graph.nodes[i].results) {
      if (id != kAbsent) maker[static_cast<size_t>(id)] = static_cast<std::ptrdiff_t>(i);
    }
  }
  std::vector<bool> placed(count, false);
  std::vector<Node> nodes;
  int32_t group = 0;
  for (size_t i = 0; i < count; ++i) {
    if (placed[i]) continue;
    const auto place = [&](size_t at) {
      placed[at] = true;
      nodes.push_back(std::move(graph.nodes[at]));
    };
    const size_t first = nodes.size();
    place(i);
    if (elements[i] == 0) continue;
    // Later nodes that need nothing but what is placed already come before the others.
    for (size_t next = i + 1; next < count; ++next) {
      if (placed[next] || elements[next] != elements[i]) continue;
      bool ready = true;
      each_read(graph.nodes[next], [&](ValueId id) {
        const std::ptrdiff_t made = maker[static_cast<size_t>(id)];
        ready = ready && (made < 0 || placed[static_cast<size_t>(made)]);
      });
      if (ready) place(next);
    }
    if (nodes.size() - first < 2) continue;
    for (size_t member = first; member < nodes.size(); ++member) nodes[member].group = group;
    ++group;
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace lockstep::compiler
