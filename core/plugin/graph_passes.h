#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

struct ls_plugin;

namespace lockstep {

/// A pass over the graphs of compiled functions that a plug-in adds (`add_graph_pass` of
/// core/plugin/plugin_abi.h).
struct PluginPass {
  std::string name;  ///< in the log
  /// Takes the text of a graph (compile/graph/graph.h) and returns that of one that computes the
  /// same. Throws what the plug-in reports, and DispatchError once the plug-in is unloaded.
  std::function<std::string(const std::string& graph)> run;
};

/// Returns the passes of the plug-ins that are loaded, in the order in which they were added.
/// Thread-safe.
std::vector<PluginPass> plugin_passes();

/// Makes the passes of a plug-in known; they end with what is returned. For the loader.
std::shared_ptr<void> register_passes(const ls_plugin& plugin);

}  // namespace lockstep
