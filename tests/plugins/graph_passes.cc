// A plug-in with passes over graphs of compiled functions. GRAPH_PASS chooses one of them, of which
// the first is sound as far as the host can see.

#include <stdexcept>

#include "core/plugin/plugin_wrapper.h"

namespace {

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Wrong on purpose, to show that it ran.
std::string sines(const std::string& graph) { return with(graph, "= cos(", "= sin("); }
std::string garbled(const std::string& graph) { return with(graph, "= cos(", "= no_such("); }
std::string narrowed(const std::string& graph) { return with(graph, "float32[4]", "float32[3]"); }
std::string throws(const std::string&) { throw std::runtime_error("thrown by a pass"); }

}  // namespace

LS_PLUGIN(library) { library.graph_pass("test_pass", &GRAPH_PASS); }
