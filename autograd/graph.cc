#include "autograd/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "autograd/meta.h"

namespace lockstep {

namespace {

bool is_sink(const Node& node) { return node.next_edges().empty(); }

}  // namespace

std::vector<Ref<Node>> graph_nodes(TensorList roots) {
  std::vector<Ref<Node>> nodes;
  std::unordered_set<const Node*> seen;
  const auto reach = [&](const Edge& edge) {
    if (edge && seen.insert(edge.node.get()).second) nodes.push_back(edge.node);
  };
  for (const Tensor& root : roots) reach(gradient_edge(root));
  for (size_t i = 0; i < nodes.size(); ++i) {  // `nodes` grows in the loop
    const Ref<Node> node = nodes[i];
    for (const Edge& edge : node->next_edges()) reach(edge);
  }
  // Sinks have the highest numbers and lead nowhere; else numbers fall along every edge.
  std::stable_sort(nodes.begin(), nodes.end(), [&](const Ref<Node>& a, const Ref<Node>& b) {
    if (is_sink(*a) != is_sink(*b)) return is_sink(*b);
    return !is_sink(*a) && a->sequence() > b->sequence();
  });
  return nodes;
}

namespace {

/// Bytes that these nodes keep alive, each storage once.
size_t saved_bytes_of(std::span<const Ref<Node>> nodes) {
  std::set<const Storage*> storages;
  size_t bytes = 0;
  for (const Ref<Node>& node : nodes) {
    for (const SavedTensorInfo& saved : node->saved_tensors()) {
      if (!saved.tensor.defined()) continue;
      const Storage* const storage = saved.tensor.storage().get();
      if (storages.insert(storage).second) bytes += storage->bytes();
    }
  }
  return bytes;
}

}  // namespace

std::string dot_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

size_t saved_bytes(TensorList roots) { return saved_bytes_of(graph_nodes(roots)); }

namespace {

std::string geometry(const GradientMeta& meta) {
  return meta.defined ? to_string(meta.dtype) + to_string(meta.sizes) : "no gradient";
}

/// What the picture says of a node.
std::string label_of(const Node& node, const std::string& name, bool saved_tensors) {
  std::string label = name.empty() ? node.name() : dot_escaped(name) + "\\n" + node.name();
  for (const GradientMeta& output : node.outputs()) label += "\\n" + geometry(output);
  if (saved_tensors) {
    for (const SavedTensorInfo& saved : node.saved_tensors()) {
      label += saved.tensor.defined()
                   ? fmt::format("\\nkeeps {} {}{}, {} bytes", dot_escaped(saved.name),
                                 to_string(saved.tensor.dtype()), saved.tensor.shape(), saved.bytes)
                   : fmt::format("\\nkeeps {} by hooks", dot_escaped(saved.name));
    }
  }
  return label;
}

// --- equal blocks --------------------------------------------------------------------------------

/// A sequence that repeats: `count` times `period` elements from `begin` on.
struct Repeats {
  size_t begin = 0;
  size_t period = 0;
  size_t count = 0;

  /// The first and the last time are drawn, those between are folded.
  size_t folded() const { return count < 4 ? 0 : (count - 2) * period; }
  size_t first_folded() const { return begin + period; }
  size_t end_folded() const { return begin + (count - 1) * period; }
};

/// The repeats in [begin, end) that fold most; of several, those with the shortest period.
Repeats longest_repeats(std::span<const size_t> kinds, size_t begin, size_t end) {
  constexpr size_t kLongestPeriod = 1000;  // nodes of a block
  Repeats best;
  for (size_t period = 1; period <= std::min(kLongestPeriod, (end - begin) / 4); ++period) {
    size_t equal = 0;  // neighbours before `i` that are as the ones a period later
    for (size_t i = begin; i + period < end; ++i) {
      equal = kinds[i] == kinds[i + period] ? equal + 1 : 0;
      const Repeats found{i + 1 - equal, period, (equal + period) / period};
      if (found.folded() > best.folded()) best = found;
    }
  }
  return best;
}

void add_repeats(std::span<const size_t> kinds, size_t begin, size_t end,
                 std::vector<Repeats>& all) {
  const Repeats found = longest_repeats(kinds, begin, end);
  if (found.folded() == 0) return;
  add_repeats(kinds, begin, found.begin, all);
  all.push_back(found);
  add_repeats(kinds, found.begin + found.count * found.period, end, all);
}

/// Which nodes a picture shows as one.
class Folding {
 public:
  /// `nodes` are in the order of `graph_nodes`.
  Folding(const std::vector<Ref<Node>>& nodes, const std::unordered_map<const Node*, size_t>& ids)
      : fold_of_(nodes.size()) {
    size_t steps = 0;
    while (steps < nodes.size() && !is_sink(*nodes[steps])) ++steps;
    add_repeats(kinds_of(nodes, ids, steps), 0, steps, folds_);
    for (size_t fold = 0; fold < folds_.size(); ++fold) {
      for (size_t i = folds_[fold].first_folded(); i < folds_[fold].end_folded(); ++i) {
        fold_of_[i] = fold;
      }
    }
    // A leaf belongs to a fold if only nodes of the fold use it.
    std::vector<bool> is_used(nodes.size());
    for (size_t i = 0; i < steps; ++i) {
      for (const Edge& edge : nodes[i]->next_edges()) {
        if (!edge || !is_sink(*edge.node)) continue;
        const size_t leaf = ids.at(edge.node.get());
        fold_of_[leaf] =
            !is_used[leaf] || fold_of_[leaf] == fold_of_[i] ? fold_of_[i] : std::nullopt;
        is_used[leaf] = true;
      }
    }
  }

  const std::vector<Repeats>& folds() const { return folds_; }
  std::optional<size_t> fold_of(size_t node) const { return fold_of_[node]; }

 private:
  /// Numbers for the first `steps` nodes, equal for nodes that do the same with what lies equally
  /// far behind them.
  static std::vector<size_t> kinds_of(const std::vector<Ref<Node>>& nodes,
                                      const std::unordered_map<const Node*, size_t>& ids,
                                      size_t steps) {
    std::unordered_map<std::string, size_t> numbers;
    std::vector<size_t> kinds;
    for (size_t i = 0; i < steps; ++i) {
      std::string kind = label_of(*nodes[i], {}, true);
      for (const Edge& edge : nodes[i]->next_edges()) {
        if (!edge) {
          kind += " -";
        } else if (is_sink(*edge.node)) {
          kind += " " + label_of(*edge.node, {}, false);
        } else {
          kind += fmt::format(" {}:{}", ids.at(edge.node.get()) - i, edge.input_nr);
        }
      }
      kinds.push_back(numbers.try_emplace(std::move(kind), numbers.size()).first->second);
    }
    return kinds;
  }

  std::vector<Repeats> folds_;
  std::vector<std::optional<size_t>> fold_of_;
};

std::string fold_label(const Repeats& fold, const std::vector<Ref<Node>>& nodes,
                       bool saved_tensors) {
  std::string label = fmt::format("{} more blocks of {} nodes", fold.count - 2, fold.period);
  if (!saved_tensors) return label;
  const auto folded = std::span(nodes).subspan(fold.first_folded(), fold.folded());
  return label + fmt::format("\\nkeep {} bytes", saved_bytes_of(folded));
}

}  // namespace

std::string graph_to_dot(TensorList roots, const GraphToDotOptions& options) {
  const std::vector<Ref<Node>> nodes = graph_nodes(roots);
  std::unordered_map<const Node*, size_t> ids;
  for (size_t i = 0; i < nodes.size(); ++i) ids[nodes[i].get()] = i;
  std::unordered_map<const Node*, std::string> names;
  for (const auto& [tensor, name] : options.names) {
    if (const Edge edge = gradient_edge(tensor)) names[edge.node.get()] = name;
  }
  std::optional<Folding> folding;
  if (options.fold_blocks) folding.emplace(nodes, ids);
  const auto fold_of = [&](size_t node) { return folding ? folding->fold_of(node) : std::nullopt; };
  const auto drawn = [&](size_t node) {
    const std::optional<size_t> fold = fold_of(node);
    return fold ? fmt::format("f{}", *fold) : fmt::format("n{}", node);
  };

  std::string dot = "digraph backward {\n  node [fontname=\"sans-serif\", fontsize=10];\n";
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (fold_of(i)) continue;
    const auto name = names.find(nodes[i].get());
    dot +=
        fmt::format("  n{} [shape={}, label=\"{}\"];\n", i, is_sink(*nodes[i]) ? "box" : "ellipse",
                    label_of(*nodes[i], name == names.end() ? std::string() : name->second,
                             options.saved_tensors));
  }
  for (size_t fold = 0; folding && fold < folding->folds().size(); ++fold) {
    dot += fmt::format("  f{} [shape=box3d, label=\"{}\"];\n", fold,
                       fold_label(folding->folds()[fold], nodes, options.saved_tensors));
  }
  std::set<std::string> of_folds;  // their edges, each once
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Edge& edge : nodes[i]->next_edges()) {
      if (!edge) continue;
      const size_t next = ids.at(edge.node.get());
      const bool one_output = edge.node->outputs().size() == 1 || fold_of(next);
      const std::string line =
          fmt::format("  {} -> {}{};\n", drawn(i), drawn(next),
                      one_output ? "" : fmt::format(" [label=\"{}\"]", edge.input_nr));
      const bool is_folded = fold_of(i) || fold_of(next);
      if (is_folded && (drawn(i) == drawn(next) || !of_folds.insert(line).second)) continue;
      dot += line;
    }
  }
  return dot + "}\n";
}

}  // namespace lockstep
