#pragma once

#include <string>
#include <vector>

#include "autograd/node.h"

namespace lockstep {

// For people who look at what a computation recorded.

/// The nodes that lead from `roots` to the leaves, each once, a node before those it leads to.
/// Roots that do not require grad are left out.
std::vector<Ref<Node>> graph_nodes(TensorList roots);

/// Bytes that the graph keeps alive for backward: memory that several saved tensors share counts
/// once, whole storages count where a view keeps one.
size_t saved_bytes(TensorList roots);

struct GraphToDotOptions {
  bool saved_tensors = true;  ///< the tensors that each node keeps, with their bytes
  /// Names of leaves ("h.0.attn.weight"), shown beside their shapes.
  std::vector<std::pair<Tensor, std::string>> names;
};

/// The graph in Graphviz's DOT language: an ellipse per node with its name and the shape of what it
/// computed, a box per leaf, arrows the way gradients go.
std::string graph_to_dot(TensorList roots, const GraphToDotOptions& options = {});

}  // namespace lockstep
