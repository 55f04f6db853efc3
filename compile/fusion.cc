#include "compile/fusion.h"

#include <algorithm>
#include <optional>

#include "compile/loop_group.h"
#include "compile/row_places.h"

namespace lockstep::compiler {

namespace {

/// Longest row of a group, in elements: a few rows of several values lie in a core's second cache.
constexpr int64_t kLongestRow = 64 * 1024;

/// The number of elements that the node computes one by one, or 0.
int64_t pointwise_count(const Graph& graph, const Node& node) {
  if (node.runs_once || !loop_of(graph, node)) return 0;
  return count_elements(type_of(graph, node.results[0]).sizes);
}

/// The nodes of a graph on their way into another order.
class Placing {
 public:
  explicit Placing(Graph& graph)
      : graph_(graph), maker_(graph.values.size(), -1), placed_(graph.nodes.size(), false) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      next_group_ = std::max(next_group_, graph.nodes[i].group + 1);
      for (const ValueId id : graph.nodes[i].results) {
        if (id != kAbsent) maker_[static_cast<size_t>(id)] = static_cast<std::ptrdiff_t>(i);
      }
    }
  }

  bool is_placed(size_t node) const { return placed_[node]; }
  /// Whether all that the node reads is there: inputs, results of placed nodes, and of `others`.
  bool is_ready(size_t node, const std::vector<size_t>& others) const {
    bool ready = true;
    each_read(graph_.nodes[node], [&](ValueId id) {
      const std::ptrdiff_t made = maker_[static_cast<size_t>(id)];
      ready = ready && (made < 0 || placed_[static_cast<size_t>(made)] ||
                        std::ranges::find(others, static_cast<size_t>(made)) != others.end());
    });
    return ready;
  }
  /// Places nodes one behind the other, as a group or in the groups that they have.
  void place(const std::vector<size_t>& nodes, bool as_group) {
    for (const size_t i : nodes) {
      placed_[i] = true;
      order_.push_back(std::move(graph_.nodes[i]));
      if (as_group) order_.back().group = next_group_;
    }
    if (as_group) ++next_group_;
  }
  void finish() { graph_.nodes = std::move(order_); }

 private:
  Graph& graph_;
  std::vector<std::ptrdiff_t> maker_;  ///< of each value; inputs have none
  std::vector<bool> placed_;
  std::vector<Node> order_;
  int32_t next_group_ = 0;
};

/// Whether the node reads what the nodes of `places` make, or a whole operand that they read.
bool is_connected(const Node& node, const RowPlaces& places, const std::vector<ValueId>& operands) {
  bool connected = false;
  each_read(node, [&](ValueId id) {
    connected = connected || places.makes(id) || std::ranges::find(operands, id) != operands.end();
  });
  return connected;
}

/// The nodes from `first` on that can run row by row with it, with one along dimensions among them;
/// or `first` alone.
std::vector<size_t> row_group_from(const Graph& graph, size_t first, const Placing& placing) {
  const std::optional<Rows> rows = rows_of(graph, graph.nodes[first]);
  if (!rows || rows->length > kLongestRow) return {first};
  RowPlaces places(*rows);
  if (!places.add(graph, graph.nodes[first])) return {first};
  std::vector<size_t> members = {first};
  std::vector<ValueId> operands;
  const auto note_operands = [&](size_t node) {
    each_read(graph.nodes[node], [&](ValueId id) {
      if (places.find(graph, id) == RowPlace::kRow) operands.push_back(id);
    });
  };
  note_operands(first);
  bool has_row_operator = works_along_dims(graph.nodes[first]);
  for (size_t next = first + 1; next < graph.nodes.size(); ++next) {
    const Node& node = graph.nodes[next];
    if (placing.is_placed(next) || !is_connected(node, places, operands) ||
        !placing.is_ready(next, members) || !places.add(graph, node)) {
      continue;
    }
    members.push_back(next);
    note_operands(next);
    has_row_operator = has_row_operator || works_along_dims(node);
  }
  if (!has_row_operator) return {first};
  return members;
}

}  // namespace

Graph fuse_rows(Graph graph) {
  Placing placing(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (placing.is_placed(i)) continue;
    const std::vector<size_t> members = row_group_from(graph, i, placing);
    placing.place(members, members.size() > 1);
  }
  placing.finish();
  return graph;
}

Graph fuse_pointwise(Graph graph, size_t least) {
  const size_t count = graph.nodes.size();
  std::vector<int64_t> elements(count);
  for (size_t i = 0; i < count; ++i) {
    if (graph.nodes[i].group == -1) elements[i] = pointwise_count(graph, graph.nodes[i]);
  }
  Placing placing(graph);
  for (size_t i = 0; i < count; ++i) {
    if (placing.is_placed(i)) continue;
    std::vector<size_t> members = {i};
    // Later nodes that need nothing but what is placed already come before the others.
    for (size_t next = i + 1; elements[i] != 0 && next < count; ++next) {
      if (placing.is_placed(next) || elements[next] != elements[i]) continue;
      if (placing.is_ready(next, members)) members.push_back(next);
    }
    placing.place(members, elements[i] != 0 && members.size() >= least);
  }
  placing.finish();
  return graph;
}

Graph read_unexpanded(Graph graph) {
  std::vector<ValueId> source(graph.values.size(), kAbsent);
  for (Node& node : graph.nodes) {
    if (node.op->name() == "expand") {
      const ValueId from = node.arguments[0].values[0];
      const bool is_column =
          is_column_of(type_of(graph, from).sizes, type_of(graph, node.results[0]).sizes);
      if (is_column) source[static_cast<size_t>(node.results[0])] = from;
      continue;
    }
    if (!is_elementwise(node)) continue;
    const ValueType& result = type_of(graph, node.results[0]);
    bool has_whole = false;
    each_read(node, [&](ValueId id) {
      has_whole = has_whole || (source[static_cast<size_t>(id)] == kAbsent &&
                                same(type_of(graph, id).sizes, result.sizes) &&
                                same(type_of(graph, id).strides, result.strides));
    });
    if (!has_whole || !is_contiguous(result.sizes, result.strides)) continue;
    each_read(node, [&](ValueId& id) {
      if (const ValueId from = source[static_cast<size_t>(id)]; from != kAbsent) id = from;
    });
  }
  return graph;
}

}  // namespace lockstep::compiler
