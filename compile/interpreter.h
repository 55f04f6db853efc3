#pragma once

#include <map>
#include <vector>

#include "compile/loop_group.h"

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

  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  const Graph& graph() const { return graph_; }

 private:
  void run_node(const Node& node, std::vector<Tensor>& values) const;

  /// Adds how the groups of the graph run.
  void prepare_groups(const std::vector<size_t>& last_reads);

  Graph graph_;
  std::vector<std::vector<ValueId>> released_;  ///< by node: what nothing behind it reads
  std::map<size_t, LoopGroup> groups_;          ///< by first node
  std::vector<size_t> group_ends_;              ///< by first node: one behind its last
};

}  // namespace lockstep::compiler
