#pragma once

#include "compile/graph.h"

namespace lockstep::compiler {

/// Runs a graph operator by operator, below autograd and autocast: with the kernels that eager
/// calls run, in the graph's order. Tensors are released behind their last use. Immutable, so
/// several threads may run it at once.
class Interpreter {
 public:
  /// Throws Error when `check(graph)` does.
  explicit Interpreter(Graph graph);

  /// Takes one tensor per input, of its type, and returns one per output. Throws what operators
  /// throw; writes into inputs come last, so that these are then as they were.
  std::vector<Tensor> run(TensorList inputs) const;

  const Graph& graph() const { return graph_; }

 private:
  void run_node(const Node& node, std::vector<Tensor>& values) const;

  Graph graph_;
  std::vector<std::vector<ValueId>> released_;  ///< by node: what nothing behind it reads
};

}  // namespace lockstep::compiler
