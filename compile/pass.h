#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::compiler {

struct Graph;

/// A step from one graph to another that computes the same bits. Code that makes one includes
/// compile/graph/graph.h.
struct Pass {
  std::string name;
  std::function<Graph(Graph)> run;
};

/// The passes that `compile` runs unless told otherwise, in their order: those of the plug-ins that
/// are loaded, and then ours.
std::vector<Pass> default_passes();

}  // namespace lockstep::compiler
