// Passes about what is known before a graph runs: constants, and casts that change nothing.

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "compile/passes.h"

namespace lockstep::compiler {

namespace {

/// Of what an interpreter keeps for one graph.
constexpr int64_t kMostConstantBytes = int64_t{16} << 20;

/// Decides which nodes run once.
class ConstantNodes {
 public:
  explicit ConstantNodes(const Graph& graph)
      : graph_(graph), is_once_(graph.nodes.size()), readers_(graph.values.size()) {
    reaches_caller_ = reach_the_caller(graph);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      is_once_[i] = may_run_once(graph.nodes[i]);
      each_read(graph.nodes[i],
                [&](ValueId id) { readers_[static_cast<size_t>(id)].push_back(i); });
    }
    while (remove_dependent()) {
    }
    keep_within_bytes();
    while (remove_dependent()) {
    }
  }

  bool operator[](size_t node) const { return is_once_[node]; }

 private:
  bool may_run_once(const Node& node) const {
    const OpKind kind = node.op->kind();
    if (node.draws_random_numbers() || node.op->schema().is_mutable() || node.group != -1 ||
        kind == OpKind::kDynamic || kind == OpKind::kHostValue) {
      return false;
    }
    return std::ranges::all_of(node.results, [&](ValueId id) {
      return id != kAbsent && !reaches_caller_[static_cast<size_t>(id)] &&
             type_of(graph_, id).device == kCPU;
    });
  }

  /// Whether something that does not run once reads what the node makes.
  bool is_read_later(const Node& node) const {
    return std::ranges::any_of(node.results, [&](ValueId id) {
      return std::ranges::any_of(readers_[static_cast<size_t>(id)],
                                 [&](size_t reader) { return !is_once_[reader]; });
    });
  }

  /// Removes nodes that read what does not run once, and memory without elements that others fill.
  bool remove_dependent() {
    std::vector<bool> is_constant(graph_.values.size(), false);
    bool removed = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_once_[i]) continue;
      const Node& node = graph_.nodes[i];
      bool stays = !(node.op->allocates_only() && is_read_later(node));
      each_read(node, [&](ValueId id) { stays = stays && is_constant[static_cast<size_t>(id)]; });
      is_once_[i] = stays;
      removed = removed || !stays;
      for (const ValueId id : node.results) is_constant[static_cast<size_t>(id)] = stays;
    }
    return removed;
  }

  void keep_within_bytes() {
    int64_t left = kMostConstantBytes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_once_[i] || !is_read_later(graph_.nodes[i])) continue;
      int64_t bytes = 0;
      for (const ValueId id : graph_.nodes[i].results) bytes += bytes_of(type_of(graph_, id));
      is_once_[i] = bytes <= left;
      if (is_once_[i]) left -= bytes;
    }
  }

  const Graph& graph_;
  std::vector<bool> reaches_caller_;
  std::vector<bool> is_once_;                 ///< by node
  std::vector<std::vector<size_t>> readers_;  ///< nodes, by value
};

/// Whether the second dtype holds every number of the first: a cast there and back gives it again.
bool holds_all(DType narrow, DType wide) {
  const auto is_one_of = [&](std::initializer_list<DType> dtypes) {
    return std::ranges::find(dtypes, wide) != dtypes.end();
  };
  using enum DType;
  switch (narrow) {
    case kBool:
      return wide != kBool;
    case kU8:
      return is_one_of({kI16, kI32, kI64, kF16, kBF16, kF32, kF64});
    case kI8:
      return is_one_of({kI16, kI32, kI64, kF16, kBF16, kF32, kF64});
    case kI16:
      return is_one_of({kI32, kI64, kF32, kF64});
    case kI32:
      return is_one_of({kI64, kF64});
    case kF16:
    case kBF16:
      return is_one_of({kF32, kF64});
    case kF32:
      return wide == kF64;
    default:
      return false;
  }
}

/// Whether the node casts and does nothing else, so that only dtypes differ.
bool is_cast(const Graph& graph, const Node& node) {
  if (node.op->name() != "_to_copy" || node.group != -1 || node.results[0] == kAbsent) return false;
  const ValueType& from = type_of(graph, node.arguments[0].values[0]);
  ValueType to = type_of(graph, node.results[0]);
  to.dtype = from.dtype;
  return to == from;
}

/// Whether the node computes its elements in a wider type and rounds them, or casts: a NaN that it
/// makes is one that casts keep.
bool rounds(const Graph& graph, const Node& node) {
  constexpr std::string_view kArithmetic[] = {
      "add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "mul.Tensor", "mul.Scalar",
      "div.Tensor", "exp",        "tanh",       "sigmoid",    "sqrt",       "rsqrt"};
  const DType dtype = type_of(graph, node.results[0]).dtype;
  if (node.op->name() == "_to_copy") {
    const DType from = type_of(graph, node.arguments[0].values[0]).dtype;
    return is_floating(from) && holds_all(dtype, from);
  }
  return (dtype == DType::kBF16 || dtype == DType::kF16) &&
         std::ranges::find(kArithmetic, node.op->name()) != std::end(kArithmetic);
}

}  // namespace

Graph fold_constants(Graph graph) {
  const ConstantNodes once(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].runs_once |= once[i];
  return graph;
}

Graph remove_casts(Graph graph) {
  const std::vector<bool> reaches_caller = reach_the_caller(graph);
  std::map<ValueId, const Node*> makers;
  std::map<ValueId, ValueId> same;
  std::vector<Node> nodes;
  nodes.reserve(graph.nodes.size());  // so that none moves
  const auto is_undone = [&](const Node& node) {
    if (!is_cast(graph, node) || reaches_caller[static_cast<size_t>(node.results[0])]) return false;
    const auto widened = makers.find(node.arguments[0].values[0]);
    if (widened == makers.end() || !is_cast(graph, *widened->second)) return false;
    const ValueId source = widened->second->arguments[0].values[0];
    const ValueType& first = type_of(graph, source);
    if (first != type_of(graph, node.results[0]) ||
        !holds_all(first.dtype, type_of(graph, node.arguments[0].values[0]).dtype)) {
      return false;
    }
    const auto maker = makers.find(source);
    if (is_floating(first.dtype) && (maker == makers.end() || !rounds(graph, *maker->second))) {
      return false;
    }
    same[node.results[0]] = source;
    return true;
  };
  for (Node& node : graph.nodes) {
    each_read(node, [&](ValueId& id) {
      if (const auto found = same.find(id); found != same.end()) id = found->second;
    });
    if (is_undone(node)) continue;
    nodes.push_back(std::move(node));
    for (const ValueId id : nodes.back().results) {
      if (id != kAbsent) makers[id] = &nodes.back();
    }
  }
  graph.nodes = std::move(nodes);
  for (Graph::Write& write : graph.writes) {
    if (const auto found = same.find(write.value); found != same.end()) write.value = found->second;
  }
  return graph;
}

}  // namespace lockstep::compiler
