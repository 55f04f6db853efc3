#include "compile/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compile/fusion.h"
#include "compile/graph/memory_plan.h"
#include "core/base/check.h"
#include "core/plugin/graph_passes.h"

namespace lockstep::compiler {

namespace {

/// What two nodes must have in common to compute the same.
std::string identity(const Node& node) {
  std::string text = (node.runs_once ? "once " : "") + node.op->name();
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

/// What passes change of a graph, in numbers.
struct Census {
  size_t nodes = 0;
  size_t once = 0;  ///< that run once
  size_t groups = 0;
  size_t grouped = 0;  ///< nodes in groups
  size_t sharing = 0;  ///< values in buffers
  size_t buffers = 0;
  friend bool operator==(const Census&, const Census&) = default;

  static Census of(const Graph& graph) {
    Census census{.nodes = graph.nodes.size()};
    int32_t group = -1;
    for (const Node& node : graph.nodes) {
      census.once += node.runs_once ? 1 : 0;
      census.grouped += node.group != -1 ? 1 : 0;
      census.groups += node.group != -1 && node.group != group ? 1 : 0;
      group = node.group;
    }
    for (const PlannedBuffer& buffer : planned_buffers(graph)) {
      census.sharing += buffer.values;
      ++census.buffers;
    }
    return census;
  }
};

/// What changed, in words: "12 -> 10 nodes, 3 run once".
std::string changes(const Census& before, const Census& after) {
  std::string text;
  const auto add = [&](std::string part) { text += (text.empty() ? "" : ", ") + std::move(part); };
  if (before.nodes != after.nodes) add(fmt::format("{} -> {} nodes", before.nodes, after.nodes));
  if (before.once != after.once) add(fmt::format("{} run once", after.once));
  if (before.grouped != after.grouped || before.groups != after.groups) {
    add(fmt::format("{} {} of {} nodes", after.groups, after.groups == 1 ? "group" : "groups",
                    after.grouped));
  }
  if (before.sharing != after.sharing || before.buffers != after.buffers) {
    add(fmt::format("{} values in {} {}", after.sharing, after.buffers,
                    after.buffers == 1 ? "buffer" : "buffers"));
  }
  return text;
}

std::string types_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (const ValueId id : ids) {
    text += (text.empty() ? "" : ", ") + (id == kAbsent ? "None" : to_string(type_of(graph, id)));
  }
  return text;
}

/// Runs the pass on the text of the graph, and checks what others rely on: the numbers of the
/// inputs, and types.
Graph run_plugin_pass(const PluginPass& pass, Graph graph) {
  const std::string text = pass.run(to_string(graph));
  Graph changed;
  try {
    changed = parse_graph(text);
  } catch (const Error& error) {
    throw Error(
        fmt::format("[compile] what pass {} gives is no graph: {}", pass.name, error.what()));
  }
  const auto compare = [&](const char* what, const std::vector<ValueId>& before,
                           const std::vector<ValueId>& after) {
    const std::string want = types_of(graph, before), got = types_of(changed, after);
    LS_CHECK(want == got, Error, "[compile] {} of pass {}: expected {}, got {}.", what, pass.name,
             want, got);
  };
  compare("inputs", graph.inputs, changed.inputs);
  compare("outputs", graph.outputs, changed.outputs);
  LS_CHECK(changed.inputs == graph.inputs && changed.writes.size() == graph.writes.size(), Error,
           "[compile] pass {} changed the numbers of inputs, or what is written into them.",
           pass.name);
  for (size_t id = changed.values.size(); id < graph.values.size(); ++id) {
    changed.values.push_back(graph.values[id]);
  }
  return changed;
}

}  // namespace

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
  std::vector<Pass> passes;
  for (PluginPass& pass : plugin_passes()) {
    const std::string name = pass.name;
    passes.push_back({name, [pass = std::move(pass)](Graph graph) {
                        return run_plugin_pass(pass, std::move(graph));
                      }});
  }
  passes.insert(passes.end(),
                {{"remove_casts", remove_casts},
                 {"read_unexpanded", read_unexpanded},
                 {"remove_dead_code", remove_dead_code},
                 {"merge_common_subexpressions", merge_common_subexpressions},
                 {"fold_constants", fold_constants},
                 {"fuse_rows", fuse_rows},
                 {"fuse_pointwise", [](Graph graph) { return fuse_pointwise(std::move(graph)); }},
                 {"plan_memory", plan_memory}});
  return passes;
}

Graph run_passes(Graph graph, const std::vector<Pass>& passes, std::vector<std::string>* log) {
  for (const Pass& pass : passes) {
    const Census before = Census::of(graph);
    graph = pass.run(std::move(graph));
    try {
      check(graph);
    } catch (const Error& error) {
      throw Error(fmt::format("[compile] the graph behind pass {} is not sound: {}", pass.name,
                              error.what()));
    }
    const std::string what = changes(before, Census::of(graph));
    if (log != nullptr && !what.empty()) log->push_back(pass.name + ": " + what);
  }
  return graph;
}

}  // namespace lockstep::compiler
