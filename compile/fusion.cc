#include "compile/fusion.h"

#include <algorithm>
#include <optional>

#include "compile/block_filled.h"
#include "compile/loop_group.h"
#include "compile/row_kernel.h"

namespace lockstep::compiler {

namespace {

/// Longest row of a group, in elements: a few rows of several values lie in a core's second cache.
constexpr int64_t kLongestRow = 64 * 1024;

/// Most nodes of a group of element-wise operators: a kernel of more would keep a compiler busy for
/// long, and save next to no pass over memory.
constexpr size_t kMostMembers = 256;

/// Most nodes of a group of rows that is one kernel, whose parameters have room for so many.
constexpr size_t kMostRowMembers = 48;

/// What a node is for a group of element-wise operators.
enum class PointwiseRole : uint8_t {
  kNone,
  kLoop,
  kGather,  ///< of rows that the group reads; apart from it, it is a copy
  kDraw,    ///< of random truths
};

PointwiseRole role_of(const Graph& graph, const Node& node) {
  if (node.group != -1 || node.runs_once) return PointwiseRole::kNone;
  if (loop_of(graph, node)) return PointwiseRole::kLoop;
  if (row_gather_of(graph, node)) return PointwiseRole::kGather;
  if (mask_draw_of(graph, node)) return PointwiseRole::kDraw;
  return PointwiseRole::kNone;
}

/// The nodes of a graph on their way into another order.
class Placing {
 public:
  explicit Placing(Graph& graph)
      : graph_(graph), maker_(graph.values.size(), -1), placed_(graph.nodes.size(), false) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      next_group_ = std::max(next_group_, graph.nodes[i].group + 1);
      if (graph.nodes[i].draws_random_numbers()) draws_.push_back(i);
      for (const ValueId id : graph.nodes[i].results) {
        if (id != kAbsent) maker_[static_cast<size_t>(id)] = static_cast<std::ptrdiff_t>(i);
      }
    }
  }

  bool is_placed(size_t node) const { return placed_[node]; }
  /// Whether all nodes before it that draw random numbers are placed, or among `others`: each draws
  /// the next numbers.
  bool is_next_to_draw(size_t node, const std::vector<size_t>& others) const {
    return std::ranges::all_of(draws_, [&](size_t i) {
      return i >= node || placed_[i] || std::ranges::find(others, i) != others.end();
    });
  }
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
  std::vector<size_t> draws_;  ///< nodes that draw random numbers
  std::vector<Node> order_;
  int32_t next_group_ = 0;
};

/// Which nodes read what others make.
class Readers {
 public:
  explicit Readers(const Graph& graph) : of_(graph.nodes.size()) {
    std::vector<size_t> maker(graph.values.size(), kOutside);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      each_read(graph.nodes[i], [&](ValueId id) { add(maker, id, i); });
      for (const ValueId id : graph.nodes[i].results) {
        if (id != kAbsent) maker[static_cast<size_t>(id)] = i;
      }
    }
    for (const ValueId id : graph.outputs) add(maker, id, kOutside);
    for (const Graph::Write& write : graph.writes) add(maker, write.value, kOutside);
  }

  /// Whether nothing but `nodes` reads what the node makes.
  bool are_among(size_t node, const std::vector<size_t>& nodes) const {
    return std::ranges::all_of(
        of_[node], [&](size_t reader) { return std::ranges::find(nodes, reader) != nodes.end(); });
  }

 private:
  static constexpr size_t kOutside = ~size_t{0};

  void add(const std::vector<size_t>& maker, ValueId id, size_t reader) {
    if (id == kAbsent) return;
    if (const size_t made = maker[static_cast<size_t>(id)]; made != kOutside) {
      of_[made].push_back(reader);
    }
  }

  std::vector<std::vector<size_t>> of_;
};

/// Whether the node reads what the nodes of `places` make, or a whole operand that they read.
bool is_connected(const Node& node, const RowPlaces& places, const std::vector<ValueId>& operands) {
  bool connected = false;
  each_read(node, [&](ValueId id) {
    connected = connected || places.makes(id) || std::ranges::find(operands, id) != operands.end();
  });
  return connected;
}

/// The nodes that join a group of rows: those that can run row by row, and as one kernel if it
/// `is_kernel`.
class RowMembers {
 public:
  RowMembers(const Graph& graph, const Rows& rows, bool is_kernel)
      : places_(rows), program_(rows), is_kernel_(is_kernel), is_output_(graph.values.size()) {
    for (const ValueId id : graph.outputs) {
      if (id != kAbsent) is_output_[static_cast<size_t>(id)] = true;
    }
  }

  const RowPlaces& places() const { return places_; }
  bool has_row_operator() const { return has_row_operator_; }

  bool add(const Graph& graph, const Node& node) {
    if (!places_.add(graph, node)) return false;
    const bool has_row_operator = has_row_operator_ || works_along_dims(node);
    if (is_kernel_) {
      RowKernelProgram more = program_;
      if (count_ == kMostRowMembers || !more.add(graph, node, places_, is_output_) ||
          (has_row_operator && more.plan() == nullptr)) {
        places_.remove(node);
        return false;
      }
      program_ = std::move(more);
      ++count_;
    }
    has_row_operator_ = has_row_operator;
    return true;
  }

 private:
  RowPlaces places_;
  RowKernelProgram program_;
  bool is_kernel_;
  std::vector<bool> is_output_;  ///< by value: it is written to memory anyway
  bool has_row_operator_ = false;
  size_t count_ = 0;
};

/// The node `first` and those behind it that join `joined` and read what is there, or what these
/// make; none if `first` does not join.
std::vector<size_t> join_from(const Graph& graph, size_t first, const Placing& placing,
                              RowMembers& joined) {
  if (!joined.add(graph, graph.nodes[first])) return {};
  std::vector<size_t> members = {first};
  std::vector<ValueId> operands;
  const auto note_operands = [&](size_t node) {
    each_read(graph.nodes[node], [&](ValueId id) {
      if (joined.places().find(graph, id) == RowPlace::kRow) operands.push_back(id);
    });
  };
  note_operands(first);
  for (size_t next = first + 1; next < graph.nodes.size(); ++next) {
    const Node& node = graph.nodes[next];
    if (placing.is_placed(next) || !is_connected(node, joined.places(), operands) ||
        !placing.is_ready(next, members) || !joined.add(graph, node)) {
      continue;
    }
    members.push_back(next);
    note_operands(next);
  }
  return members;
}

/// Finds groups of rows, each from its first node on.
class RowGroups {
 public:
  explicit RowGroups(const Graph& graph) : has_step_(graph.nodes.size()) {}

  /// The nodes from `first` on that can run row by row with it, with one along dimensions among
  /// them; or `first` alone.
  std::vector<size_t> from(const Graph& graph, size_t first, const Placing& placing) {
    const std::optional<Rows> rows = rows_of(graph, graph.nodes[first]);
    if (!rows || rows->length > kLongestRow) return {first};
    RowMembers together(graph, *rows, /*is_kernel=*/false);
    std::vector<size_t> members = join_from(graph, first, placing, together);
    if (!together.has_row_operator()) return {first};
    if (!makes_row_kernels(graph, graph.nodes[first])) return members;
    // Operators are called to see what can be one kernel: only where there is a step along rows.
    const bool has_step = std::ranges::any_of(members, [&](size_t node) {
      return works_along_dims(graph.nodes[node]) && has_step_of(graph, node, together.places());
    });
    if (!has_step) return {first};
    RowMembers as_kernel(graph, *rows, /*is_kernel=*/true);
    members = join_from(graph, first, placing, as_kernel);
    return as_kernel.has_row_operator() ? members : std::vector<size_t>{first};
  }

 private:
  bool has_step_of(const Graph& graph, size_t node, const RowPlaces& places) {
    if (!has_step_[node]) has_step_[node] = has_row_step(graph, graph.nodes[node], places);
    return *has_step_[node];
  }

  std::vector<std::optional<bool>> has_step_;  ///< by node
};

}  // namespace

Graph fuse_rows(Graph graph) {
  Placing placing(graph);
  RowGroups groups(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (placing.is_placed(i)) continue;
    const std::vector<size_t> members = groups.from(graph, i, placing);
    placing.place(members, members.size() > 1);
  }
  placing.finish();
  return graph;
}

Graph fuse_pointwise(Graph graph, size_t least) {
  const size_t count = graph.nodes.size();
  std::vector<PointwiseRole> roles(count);
  std::vector<int64_t> elements(count);
  for (size_t i = 0; i < count; ++i) {
    roles[i] = role_of(graph, graph.nodes[i]);
    if (roles[i] == PointwiseRole::kNone) continue;
    elements[i] = count_elements(type_of(graph, graph.nodes[i].results[0]).sizes);
  }
  const Readers readers(graph);
  Placing placing(graph);
  const auto may_join = [&](size_t node, const std::vector<size_t>& members) {
    if (placing.is_placed(node) || elements[node] != elements[members[0]]) return false;
    // A gather that is apart after all comes before the group.
    if (roles[node] == PointwiseRole::kGather) return placing.is_ready(node, {});
    return placing.is_ready(node, members) &&
           (roles[node] != PointwiseRole::kDraw || placing.is_next_to_draw(node, members));
  };
  for (size_t i = 0; i < count; ++i) {
    if (placing.is_placed(i)) continue;
    std::vector<size_t> members = {i};
    // Later nodes that need nothing but what is placed already come before the others.
    for (size_t next = i + 1; elements[i] != 0 && next < count && members.size() < kMostMembers;
         ++next) {
      if (may_join(next, members)) members.push_back(next);
    }
    const std::vector<size_t> all = members;
    std::erase_if(members, [&](size_t node) {
      if (roles[node] != PointwiseRole::kGather || readers.are_among(node, all)) return false;
      placing.place({node}, /*as_group=*/false);
      return true;
    });
    const bool has_loop =
        std::ranges::any_of(members, [&](size_t n) { return roles[n] == PointwiseRole::kLoop; });
    placing.place(members, has_loop && members.size() >= least);
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
