#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compile/graph/graph.h"

namespace lockstep::compiler {

/// The rows that the operators of a group have in common: contiguous tensors of `sizes` consist of
/// `count` rows of `length` elements.
struct Rows {
  Dims sizes;
  int64_t count = 0;
  int64_t length = 0;

  /// The rows of tensors of these sizes; nothing for fewer than two rows, or rows of one element.
  static std::optional<Rows> of(const Dims& sizes);
};

/// What of a value belongs to a row.
enum class RowPlace : uint8_t {
  kRow,      ///< a whole row of `length` elements
  kNumber,   ///< one element, in a last dimension of size 1
  kReduced,  ///< one element, without the last dimension; results only
  kShared,   ///< all of it: the value is one row or one number, which every row reads
};

/// Tells for nodes whether each row of their results depends on the same row of their operands
/// alone, and how the values that they make lie among the rows.
class RowPlaces {
 public:
  explicit RowPlaces(Rows rows) : rows_(std::move(rows)) {}

  const Rows& rows() const { return rows_; }
  /// Takes a node that computes row by row, and returns true: an element-wise operator, a reduction
  /// or another operator along the last dimension, or a norm of it. Nodes are given in an order in
  /// which they can run.
  bool add(const Graph& graph, const Node& node);
  /// Takes back a node that was added, and whose results no other reads.
  void remove(const Node& node);
  /// The place of a value that a node of these reads or makes; nothing if it is in none.
  std::optional<RowPlace> find(const Graph& graph, ValueId id) const;
  /// Whether one of the nodes made the value.
  bool makes(ValueId id) const { return made_.contains(id); }

 private:
  std::optional<RowPlace> place_of(const ValueType& type) const;
  /// Whether the operands lie as the operator needs them to work on one row at a time.
  bool reads_rows(const Graph& graph, const Node& node) const;

  Rows rows_;
  std::unordered_map<ValueId, RowPlace> made_;
};

/// Whether the node's operator is one along dimensions or a norm, and not an element-wise one.
bool works_along_dims(const Node& node);
/// The device of the first tensor that the node reads; cpu if it reads none.
Device device_of(const Graph& graph, const Node& node);
/// Whether that device makes one kernel of operators along rows (RowKernelGroup), instead of
/// running them on a few rows at a time (RowGroup).
bool makes_row_kernels(const Graph& graph, const Node& node);
/// Returns the type that `count` rows of a value have.
ValueType type_of_rows(const ValueType& type, RowPlace place, int64_t count);
/// The rows that the node would work on: those of its largest operand.
std::optional<Rows> rows_of(const Graph& graph, const Node& node);
/// Returns the rows of a group's first node that has any. Throws Error if none has.
Rows rows_of_group(const Graph& graph, std::span<const Node> nodes);

/// Returns the nodes of a group as a graph of their own, whose values have the types `type(id)`.
/// `operands` are its inputs and `results` its outputs; each has the number of its `value`.
template <class Bound, class TypeOf>
Graph graph_of_nodes(std::span<const Node> nodes, const std::vector<Bound>& operands,
                     const std::vector<Bound>& results, const TypeOf& type) {
  Graph graph;
  std::unordered_map<ValueId, ValueId> inside;
  const auto add = [&](ValueId id) { return inside[id] = graph.add_value(type(id)); };
  for (const Bound& operand : operands) graph.inputs.push_back(add(operand.value));
  for (Node node : nodes) {
    node.group = -1;
    each_read(node, [&](ValueId& id) { id = inside.at(id); });
    for (ValueId& id : node.results) {
      if (id != kAbsent) id = add(id);
    }
    graph.nodes.push_back(std::move(node));
  }
  for (const Bound& result : results) graph.outputs.push_back(inside.at(result.value));
  return graph;
}

}  // namespace lockstep::compiler
