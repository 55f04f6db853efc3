// The plug-in loaded by benchmarks/plugin.cc: an operator whose kernel does nothing.

#include "core/plugin/plugin_wrapper.h"

using namespace lockstep::plugin;

LS_PLUGIN(library) {
  library.define("plugin::noop(Tensor self) -> Tensor", "Leaves its result as it was allocated.")
      .rule([](Rule& rule, View self) { rule.result_like(self); })
      .kernel([](Result, View) {});
  library.override_kernel("bench::replaced", [](Result, View) {});
}
