#pragma once

#include <span>
#include <string>

#include "compile/graph/graph.h"

// Graphs for other programs, which cannot be read back; `to_string` (compile/graph/graph.h) can.

namespace lockstep::compiler {

struct NamedGraph {
  std::string name;
  Graph graph;
};

/// In Graphviz's DOT language: a box for each call with its constants, the groups that run as one
/// loop in frames, and the tensors between them as arrows with their types.
std::string to_dot(std::span<const NamedGraph> graphs);

/// As an array of objects:
///
///     {"name": "...", "values": [{"dtype": "float32", "device": "cpu", "sizes": [2, 3],
///      "strides": [3, 1]}], "inputs": [0], "nodes": [{"op": "add.Tensor", "arguments": ["%0",
///      "%0", "1"], "reads": [0, 0], "results": [1], "group": null}], "outputs": [1], "writes":
///      [{"input": 0, "value": 1}]}
///
/// Numbers are those of values; an undefined tensor is null. Arguments are as in the graph's text.
std::string to_json(std::span<const NamedGraph> graphs);

}  // namespace lockstep::compiler
