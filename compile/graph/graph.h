#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/dispatch/operator.h"

/// Programs of operators as values: recorded once, changed by passes, run many times.
namespace lockstep::compiler {

/// Number of a value of a graph: its place in Graph::values.
using ValueId = int32_t;
/// An undefined tensor.
inline constexpr ValueId kAbsent = -1;
/// Buffer of a value that has memory of its own.
inline constexpr int32_t kOwnMemory = -1;

/// What is known of a tensor before the graph runs.
struct ValueType {
  DType dtype = DType::kF32;
  Device device;
  Dims sizes;
  Dims strides;  ///< in elements

  static ValueType of(const Tensor& tensor);
  friend bool operator==(const ValueType& a, const ValueType& b) {
    return a.dtype == b.dtype && a.device == b.device && same(a.sizes, b.sizes) &&
           same(a.strides, b.strides);
  }
};
/// Returns how many bytes its elements take without gaps.
int64_t bytes_of(const ValueType& type);
/// Makes an uninitialised tensor of the type.
Tensor make_tensor(const ValueType& type);
/// "float32[2, 3]"; with strides unless they are row-major, and the device unless it is cpu.
std::string to_string(const ValueType& type);

/// One argument of a node: a tensor, a list of tensors, or a constant.
struct NodeArgument {
  enum class Kind : uint8_t { kConstant, kTensor, kTensors };
  Kind kind = Kind::kConstant;
  Value constant = {};               ///< owns what it holds; never a tensor
  std::vector<ValueId> values = {};  ///< one for kTensor
};

inline NodeArgument constant_argument(Value value) {
  return {NodeArgument::Kind::kConstant, std::move(value), {}};
}
inline NodeArgument tensor_argument(ValueId id) { return {NodeArgument::Kind::kTensor, {}, {id}}; }

/// A call of an operator. It changes no value: an argument that the operator writes is copied
/// first, and what the copy holds afterwards is another result.
struct Node {
  const Operator* op = nullptr;
  std::vector<NodeArgument> arguments;  ///< in the schema's order, every one given
  /// The tensors that the operator returns, lists flattened, kAbsent for undefined ones and for
  /// those that are written arguments; then one for each tensor of the written arguments.
  std::vector<ValueId> results;
  /// Nodes in a row with the same number run block by block (compile/fusion.h); -1 for none.
  int32_t group = -1;
  /// Nothing that changes decides what it computes: an Interpreter calls it once, when it is made
  /// (fold_constants). Nor do results reach a caller.
  bool runs_once = false;

  /// Whether a second call would give something else: it draws random numbers.
  bool draws_random_numbers() const { return op->draws_random_numbers(); }
};

/// A program in static single assignment: each value is an input or the result of one node. A value
/// type; copies are independent.
struct Graph {
  /// At the end of a run, the elements of `value` are copied into the tensor of `input`.
  struct Write {
    ValueId input = kAbsent;
    ValueId value = kAbsent;
    friend bool operator==(const Write&, const Write&) = default;
  };

  std::vector<ValueType> values;
  std::vector<ValueId> inputs;
  std::vector<Node> nodes;  ///< in an order in which they can run
  std::vector<ValueId> outputs;
  std::vector<Write> writes;
  /// By value: the number of the buffer that it has in turn with others, or kOwnMemory. Empty
  /// without a plan (compile/graph/memory_plan.h).
  std::vector<int32_t> buffers;

  ValueId add_value(const ValueType& type);
};

inline const ValueType& type_of(const Graph& graph, ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

/// Calls visit(id) for each value that the node reads, once an argument; kAbsent is left out.
template <class Visit>
void each_read(const Node& node, Visit&& visit) {
  for (const NodeArgument& argument : node.arguments) {
    for (const ValueId id : argument.values) {
      if (id != kAbsent) visit(id);
    }
  }
}
/// The same for reads that may be changed.
template <class Visit>
void each_read(Node& node, Visit&& visit) {
  for (NodeArgument& argument : node.arguments) {
    for (ValueId& id : argument.values) {
      if (id != kAbsent) visit(id);
    }
  }
}

/// Has each result of a view lie in the memory of what it is a view of: `memory` has, by value, the
/// one whose memory it lies in.
void follow_views(std::span<const Node> nodes, std::vector<ValueId>& memory);

/// Returns the arguments of a node as an operator takes them: `tensors` has one for each of their
/// values, undefined for kAbsent, and must outlive them.
std::vector<Value> argument_values(const std::vector<NodeArgument>& arguments, TensorList tensors);
/// Calls an operator on the arguments of a node, and returns the results.
std::vector<Value> call(const Operator& op, const std::vector<NodeArgument>& arguments,
                        TensorList tensors);

/// Throws Error, naming the node, unless every value is defined once and before it is read,
/// arguments fit the operator's schema, inputs, outputs and writes name values, nodes that run once
/// depend on others of these alone, and values that share a buffer live one after the other.
void check(const Graph& graph);

/// An argument as it stands in the text of a graph: "%2", "[%0, %1]", "1.5", "None".
std::string to_string(const NodeArgument& argument);

/// Line by line, as `parse_graph` reads it:
///
///     graph(%0: float32[2, 3], %1: float32[3]) {
///       %2: float32[2, 3] = add.Tensor(%0, %1, 1)
///       %3: float32[2] = sum.dim_IntList(%2, [1], False, None)
///       return %3
///     }
///
/// The nodes of a group stand in "fused { }", and "once" stands before one that runs once. "in 2"
/// behind a result's type is its buffer.
std::string to_string(const Graph& graph);
/// Reads the text of a graph. Throws Error with the line, and what was expected there.
Graph parse_graph(std::string_view text);

}  // namespace lockstep::compiler
