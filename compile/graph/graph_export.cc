#include "compile/graph/graph_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "autograd/graph.h"

namespace lockstep::compiler {

namespace {

using Json = nlohmann::ordered_json;

/// Writes one graph as a part of a picture.
class Drawing {
 public:
  Drawing(const NamedGraph& named, size_t number, std::string& text)
      : graph_(named.graph), prefix_(fmt::format("g{}", number)), text_(text) {
    text_ += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\"\n", prefix_,
                         dot_escaped(named.name));
  }

  void draw() {
    for (const ValueId input : graph_.inputs) {
      makers_[input] = fmt::format("{}i{}", prefix_, input);
      text_ += fmt::format("    {} [shape=ellipse, label=\"%{}\"]\n", makers_[input], input);
    }
    int32_t group = -1;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (group != node.group && group != -1) text_ += "    }\n";
      if (group != node.group && node.group != -1) {
        text_ += fmt::format(
            "    subgraph cluster_{}l{} {{\n      label=\"one loop\"\n      style=dashed\n",
            prefix_, node.group);
      }
      group = node.group;
      draw(node, fmt::format("{}n{}", prefix_, i));
    }
    if (group != -1) text_ += "    }\n";
    for (const Graph::Write& write : graph_.writes) {
      arrow(write.value, makers_[write.input], ", style=dotted");
    }
    text_ += fmt::format("    {}out [shape=ellipse, label=\"outputs\"]\n", prefix_);
    for (const ValueId output : graph_.outputs) arrow(output, prefix_ + "out");
    // Arrows stand behind all frames: one within a frame would draw its ends into it.
    text_ += arrows_ + "  }\n";
  }

 private:
  void draw(const Node& node, const std::string& name) {
    std::vector<std::string> arguments;
    for (const NodeArgument& argument : node.arguments) {
      std::string text = to_string(argument);
      if (argument.kind == NodeArgument::Kind::kConstant && text == "None") continue;
      arguments.push_back(std::move(text));
    }
    text_ += fmt::format("      {} [shape=box, label=\"{}({})\"]\n", name, node.op->name(),
                         dot_escaped(fmt::format("{}", fmt::join(arguments, ", "))));
    each_read(node, [&](ValueId id) { arrow(id, name); });
    for (const ValueId result : node.results) makers_[result] = name;
  }

  void arrow(ValueId id, const std::string& to, const char* style = "") {
    if (id == kAbsent) return;
    arrows_ += fmt::format("    {} -> {} [label=\"%{}: {}\"{}]\n", makers_[id], to, id,
                           to_string(graph_.values[static_cast<size_t>(id)]), style);
  }

  const Graph& graph_;
  std::string prefix_;
  std::string& text_;
  std::map<ValueId, std::string> makers_;  ///< names of the boxes that values come from
  std::string arrows_;
};

Json ids(const std::vector<ValueId>& values) {
  Json list = Json::array();
  for (const ValueId id : values) list.push_back(id == kAbsent ? Json() : Json(id));
  return list;
}

Json json_of(const ValueType& type) {
  return {{"dtype", to_string(type.dtype)},
          {"device", to_string(type.device)},
          {"sizes", std::vector<int64_t>(type.sizes.begin(), type.sizes.end())},
          {"strides", std::vector<int64_t>(type.strides.begin(), type.strides.end())}};
}

Json json_of(const Node& node) {
  Json arguments = Json::array(), reads = Json::array();
  for (const NodeArgument& argument : node.arguments) arguments.push_back(to_string(argument));
  each_read(node, [&](ValueId id) { reads.push_back(id); });
  return {{"op", node.op->name()},
          {"arguments", std::move(arguments)},
          {"reads", std::move(reads)},
          {"results", ids(node.results)},
          {"group", node.group == -1 ? Json() : Json(node.group)},
          {"once", node.runs_once}};
}

}  // namespace

std::string to_dot(std::span<const NamedGraph> graphs) {
  std::string text = "digraph compiled {\n  node [fontname=\"Helvetica\"]\n";
  for (size_t i = 0; i < graphs.size(); ++i) Drawing(graphs[i], i, text).draw();
  return text + "}\n";
}

std::string to_json(std::span<const NamedGraph> graphs) {
  Json all = Json::array();
  for (const NamedGraph& named : graphs) {
    const Graph& graph = named.graph;
    Json values = Json::array(), nodes = Json::array(), writes = Json::array();
    for (size_t i = 0; i < graph.values.size(); ++i) {
      values.push_back(json_of(graph.values[i]));
      const bool shares = !graph.buffers.empty() && graph.buffers[i] != kOwnMemory;
      values.back()["buffer"] = shares ? Json(graph.buffers[i]) : Json();
    }
    for (const Node& node : graph.nodes) nodes.push_back(json_of(node));
    for (const Graph::Write& write : graph.writes) {
      writes.push_back({{"input", write.input}, {"value", write.value}});
    }
    all.push_back({{"name", named.name},
                   {"values", std::move(values)},
                   {"inputs", ids(graph.inputs)},
                   {"nodes", std::move(nodes)},
                   {"outputs", ids(graph.outputs)},
                   {"writes", std::move(writes)}});
  }
  return all.dump(1) + "\n";
}

}  // namespace lockstep::compiler
