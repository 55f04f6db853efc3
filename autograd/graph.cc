#include "autograd/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "autograd/meta.h"

namespace lockstep {

std::vector<Ref<Node>> graph_nodes(TensorList roots) {
  std::vector<Ref<Node>> nodes;
  std::unordered_set<const Node*> seen;
  const auto reach = [&](const Edge& edge) {
    if (edge && seen.insert(edge.node.get()).second) nodes.push_back(edge.node);
  };
  for (const Tensor& root : roots) reach(gradient_edge(root));
  for (size_t i = 0; i < nodes.size(); ++i) {  // `nodes` grows in the loop
    const Ref<Node> node = nodes[i];
    for (const Edge& edge : node->next_edges()) reach(edge);
  }
  // Sinks have the highest numbers and lead nowhere; else numbers fall along every edge.
  const auto is_sink = [](const Ref<Node>& node) { return node->next_edges().empty(); };
  std::stable_sort(nodes.begin(), nodes.end(), [&](const Ref<Node>& a, const Ref<Node>& b) {
    if (is_sink(a) != is_sink(b)) return is_sink(b);
    return !is_sink(a) && a->sequence() > b->sequence();
  });
  return nodes;
}

size_t saved_bytes(TensorList roots) {
  std::set<const Storage*> storages;
  size_t bytes = 0;
  for (const Ref<Node>& node : graph_nodes(roots)) {
    for (const SavedTensorInfo& saved : node->saved_tensors()) {
      if (!saved.tensor.defined()) continue;
      const Storage* storage = saved.tensor.storage().get();
      if (storages.insert(storage).second) bytes += storage->bytes();
    }
  }
  return bytes;
}

namespace {

/// Escapes text for a quoted string of DOT.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string geometry(const GradientMeta& meta) {
  return meta.defined ? to_string(meta.dtype) + to_string(meta.sizes) : "no gradient";
}

std::string node_line(size_t id, const Node& node, const std::string& name, bool saved_tensors) {
  std::string label = name.empty() ? node.name() : quoted(name) + "\\n" + node.name();
  for (const GradientMeta& output : node.outputs()) label += "\\n" + geometry(output);
  if (saved_tensors) {
    for (const SavedTensorInfo& saved : node.saved_tensors()) {
      label += saved.tensor.defined()
                   ? fmt::format("\\nkeeps {} {}{}, {} bytes", quoted(saved.name),
                                 to_string(saved.tensor.dtype()), saved.tensor.shape(), saved.bytes)
                   : fmt::format("\\nkeeps {} by hooks", quoted(saved.name));
    }
  }
  const char* const shape = node.next_edges().empty() ? "box" : "ellipse";
  return fmt::format("  n{} [shape={}, label=\"{}\"];\n", id, shape, label);
}

}  // namespace

std::string graph_to_dot(TensorList roots, const GraphToDotOptions& options) {
  const std::vector<Ref<Node>> nodes = graph_nodes(roots);
  std::unordered_map<const Node*, size_t> ids;
  for (size_t i = 0; i < nodes.size(); ++i) ids[nodes[i].get()] = i;
  std::unordered_map<const Node*, std::string> names;
  for (const auto& [tensor, name] : options.names) {
    if (const Edge edge = gradient_edge(tensor)) names[edge.node.get()] = name;
  }
  std::string dot = "digraph backward {\n  node [fontname=\"sans-serif\", fontsize=10];\n";
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto name = names.find(nodes[i].get());
    dot += node_line(i, *nodes[i], name == names.end() ? std::string() : name->second,
                     options.saved_tensors);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Edge& edge : nodes[i]->next_edges()) {
      if (!edge) continue;
      const bool one_output = edge.node->outputs().size() == 1;
      dot += fmt::format("  n{} -> n{}{};\n", i, ids.at(edge.node.get()),
                         one_output ? "" : fmt::format(" [label=\"{}\"]", edge.input_nr));
    }
  }
  return dot + "}\n";
}

}  // namespace lockstep
