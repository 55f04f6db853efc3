#include "compile/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compile/fusion.h"
#include "core/base/check.h"

namespace lockstep::compiler {

namespace {

/// Which values reach an output or a write, or share memory with one, as far as views of the graph
/// make them.
std::vector<bool> reach_the_caller(const Graph& graph) {
  std::vector<bool> reaches(graph.values.size(), false);
  for (const ValueId id : graph.outputs) {
    if (id != kAbsent) reaches[static_cast<size_t>(id)] = true;
  }
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (node->op->kind() != OpKind::kView) continue;
    const bool shared = std::ranges::any_of(node->results, [&](ValueId id) {
      return id != kAbsent && reaches[static_cast<size_t>(id)];
    });
    if (shared) each_read(*node, [&](ValueId id) { reaches[static_cast<size_t>(id)] = true; });
  }
  return reaches;
}

/// What two nodes must have in common to compute the same.
std::string identity(const Node& node) {
  std::string text = node.op->name();
  for (const NodeArgument& argument : node.arguments) {
    text += argument.kind == NodeArgument::Kind::kTensors ? "|[" : "|";
    if (argument.kind == NodeArgument::Kind::kConstant) {
      const Value& value = argument.constant;
      text += fmt::format("{}:", static_cast<int>(value.tag()));
      // Its text shortens numbers.
      if (value.tag() == Value::Tag::kDouble ||
          (value.tag() == Value::Tag::kScalar && value.to_scalar().is_floating())) {
        text +=
            fmt::format("{:a}", value.tag() == Value::Tag::kDouble ? value.to_double()
                                                                   : value.to_scalar().to_double());
      } else {
        text += value.to_string();
      }
    }
    for (const ValueId id : argument.values) text += fmt::format("%{},", id);
  }
  return text;
}

}  // namespace

Graph remove_dead_code(Graph graph) {
  std::vector<bool> used(graph.values.size(), false);
  const auto use = [&](ValueId id) {
    if (id != kAbsent) used[static_cast<size_t>(id)] = true;
  };
  for (const ValueId id : graph.outputs) use(id);
  for (const Graph::Write& write : graph.writes) use(write.value);
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_read = std::ranges::any_of(
        node->results, [&](ValueId id) { return id != kAbsent && used[static_cast<size_t>(id)]; });
    if (!is_read && !node->draws_random_numbers()) continue;
    each_read(*node, use);
    kept.push_back(std::move(*node));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  return graph;
}

Graph merge_common_subexpressions(Graph graph) {
  const std::vector<bool> kept_apart = reach_the_caller(graph);
  std::unordered_map<std::string, std::vector<ValueId>> seen;
  std::map<ValueId, ValueId> replaced;
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    each_read(node, [&](ValueId& id) {
      if (const auto found = replaced.find(id); found != replaced.end()) id = found->second;
    });
    const bool apart =
        node.draws_random_numbers() || std::ranges::any_of(node.results, [&](ValueId id) {
          return id != kAbsent && kept_apart[static_cast<size_t>(id)];
        });
    if (!apart) {
      const auto [first, is_new] = seen.try_emplace(identity(node), node.results);
      if (!is_new) {
        for (size_t i = 0; i < node.results.size(); ++i) {
          if (node.results[i] != kAbsent) replaced[node.results[i]] = first->second[i];
        }
        continue;
      }
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  for (Graph::Write& write : graph.writes) {
    if (const auto found = replaced.find(write.value); found != replaced.end()) {
      write.value = found->second;
    }
  }
  return graph;
}

std::vector<Pass> default_passes() {
  return {{"read_unexpanded", read_unexpanded},
          {"remove_dead_code", remove_dead_code},
          {"merge_common_subexpressions", merge_common_subexpressions},
          {"fuse_rows", fuse_rows},
          {"fuse_pointwise", [](Graph graph) { return fuse_pointwise(std::move(graph)); }}};
}

Graph run_passes(Graph graph, const std::vector<Pass>& passes, std::vector<std::string>* log) {
  for (const Pass& pass : passes) {
    const size_t before = graph.nodes.size();
    graph = pass.run(std::move(graph));
    try {
      check(graph);
    } catch (const Error& error) {
      throw Error(fmt::format("[compile] the graph behind pass {} is not sound: {}", pass.name,
                              error.what()));
    }
    if (log != nullptr && graph.nodes.size() != before) {
      log->push_back(fmt::format("{}: {} -> {} nodes", pass.name, before, graph.nodes.size()));
    }
  }
  return graph;
}

}  // namespace lockstep::compiler
