#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// A point of a recorded function at which the host learns what tensors hold, so that what follows
/// may depend on it: a call of an operator that returns numbers (`item`), or of one whose results
/// have sizes that depend on elements (`nonzero`).
struct HostRead {
  const Operator* op = nullptr;
  bool of_sizes = false;  ///< whether the sizes of the operator's results are what is read
  std::vector<NodeArgument> arguments = {};  ///< the operator's; its results if sizes are read
  size_t end = 0;                            ///< number of nodes of the graph that run before
  std::vector<Value> values;                 ///< what was read when the function was recorded

  /// Reads again from other tensors, one for each tensor of the arguments.
  std::vector<Value> read(TensorList tensors) const;
};

/// Whether both are of one type and equal, numbers bit by bit.
bool same_constant(const Value& a, const Value& b);
bool same_constants(const std::vector<Value>& a, const std::vector<Value>& b);
/// Whether both nodes call the same operator on the same arguments for the same results.
bool same_call(const Node& a, const Node& b);
bool same_calls(std::span<const Node> a, std::span<const Node> b);
/// Whether both graphs do the same on values of the same types.
bool same_graph(const Graph& a, const Graph& b);

/// "item gives 3.5"; "the sizes of what nonzero makes are [4, 2]".
std::string description(const HostRead& read, const std::vector<Value>& values);
std::string to_string(const std::vector<Value>& values);

}  // namespace lockstep::compiler
