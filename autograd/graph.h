#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autograd/node.h"

namespace lockstep {

// Inspection of recorded graphs.

/// The nodes between `roots` and the leaves in topological order, each once. Roots that do not
/// require grad are skipped.
std::vector<Ref<Node>> graph_nodes(TensorList roots);

/// Bytes that the graph keeps alive for backward. Shared memory is counted once; a saved view
/// counts its whole storage.
size_t saved_bytes(TensorList roots);

struct GraphToDotOptions {
  bool saved_tensors = true;  ///< the tensors that each node keeps, with their bytes
  /// Whether of four and more equal blocks in a row, as the layers of a transformer are, the first
  /// and the last are drawn, and a single box for those between. Blocks are equal if their nodes
  /// have the same names, shapes and edges; names of leaves may differ.
  bool fold_blocks = false;
  /// Names of leaves ("h.0.attn.weight"), shown beside their shapes.
  std::vector<std::pair<Tensor, std::string>> names = {};
};

/// The graph in Graphviz's DOT language: an ellipse per node with its name and the shape of its
/// result, a box per leaf, and arrows in the direction of the gradients.
std::string graph_to_dot(TensorList roots, const GraphToDotOptions& options = {});
/// Escapes text for a quoted string of DOT.
std::string dot_escaped(std::string_view text);

}  // namespace lockstep
