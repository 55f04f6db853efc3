// Faulty plug-ins; a macro of the build selects the fault.

#include <stdexcept>

#include "core/plugin/plugin_wrapper.h"

#ifdef FAULT_NEWER_ABI
extern "C" {
const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION + 1;
int ls_plugin_init(const ls_host* host, ls_plugin*) {
  return host->fail(LS_ERROR, "must not have been called");
}
}
#elif defined(FAULT_NO_ENTRY)
extern "C" {
const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION;
}
#elif defined(FAULT_NO_VERSION)
extern "C" LS_PLUGIN_EXPORT int some_other_library() { return 1; }
#elif defined(FAULT_UNRESOLVED)
extern "C" int function_that_no_library_has();
extern "C" {
const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION;
int ls_plugin_init(const ls_host*, ls_plugin*) { return function_that_no_library_has(); }
}
#elif defined(FAULT_THROWS)
// Bypasses the checks of the wrapper.
extern "C" {
const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION;
static int throwing_rule(void*, ls_call*) { throw std::out_of_range("thrown by a rule"); }
static int throwing_body(void*, ls_call*) { throw 42; }
int ls_plugin_init(const ls_host* host, ls_plugin* plugin) {
  ls_op* op = host->define(plugin, "faulty::rule(Tensor self) -> Tensor", "Throws.");
  if (op == nullptr || host->set_rule(op, &throwing_rule, nullptr) != 0) return 1;
  op = host->define(plugin, "faulty::body(Tensor self) -> Tensor", "Throws.");
  return op == nullptr || host->set_body(op, &throwing_body, nullptr) != 0;
}
}
#elif defined(FAULT_INIT_THROWS)
extern "C" {
const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION;
int ls_plugin_init(const ls_host*, ls_plugin*) { throw std::runtime_error("no licence found"); }
}
#else
using namespace lockstep::plugin;

LS_PLUGIN(library) {
  library.define("faulty::first(Tensor self) -> Tensor", "Comes before what is wrong.")
      .rule([](Rule& rule, View self) { rule.result_like(self); })
      .kernel([](Result, View) {});
  library.override_kernel("relu", [](Result, View) {});
#if defined(FAULT_SCHEMA)
  library.define("faulty::second(Tensor self, flaot x) -> Tensor", "");
#elif defined(FAULT_DOUBLED_ARGUMENT)
  library.define("faulty::second(Tensor self, Tensor self) -> Tensor", "");
#elif defined(FAULT_DEFAULT_TYPE)
  library.define("faulty::second(Tensor self, int x=\"one\") -> Tensor", "");
#elif defined(FAULT_REQUIRED_ARGUMENT)
  library.define("faulty::second(float x=0.5, Tensor y) -> Tensor", "");
#elif defined(FAULT_STRAY_WORDS)
  library.define("faulty::second(Tensor self) -> Tensor please", "");
#elif defined(FAULT_NO_NAMESPACE)
  library.define("second(Tensor self) -> Tensor", "");
#elif defined(FAULT_KERNEL_TYPE)
  library.define("faulty::second(Tensor self, float x) -> Tensor", "")
      .rule([](Rule& rule, View self, double) { rule.result_like(self); })
      .kernel([](Result, View, int64_t) {});
#elif defined(FAULT_OVERRIDE_TYPE)
  library.override_kernel("sigmoid", [](Result, View, View) {});
#elif defined(FAULT_NO_RULE)
  library.define("faulty::second(Tensor self) -> Tensor", "").kernel([](Result, View) {});
#elif defined(FAULT_VIEW_RESULT)
  library.define("faulty::second(Tensor(a) self) -> Tensor(a)", "").rule([](Rule& rule, View self) {
    rule.result_like(self);
  });
#elif defined(FAULT_LIST_RESULT)
  library.define("faulty::second(Tensor self) -> Tensor[]", "").dynamic();
#elif defined(FAULT_DYNAMIC_RULE)
  library.define("faulty::second(Tensor self) -> Tensor", "")
      .dynamic()
      .rule([](Rule& rule, View self) { rule.result_like(self); });
#elif defined(FAULT_DYNAMIC_CHANGES)
  library.define("faulty::second(Tensor(a!) self) -> int", "").kernel([](Writable) -> int64_t {
    return 0;
  });
#elif defined(FAULT_NUMBER_DERIVATIVE)
  library.define("faulty::second(Tensor self) -> float", "").derivative({}, [](Backward&) {});
#elif defined(FAULT_TAKEN_NAME)
  library.define("faulty::first(Tensor self) -> Tensor", "");
#elif defined(FAULT_UNKNOWN_OVERRIDE)
  library.override_kernel("sigmoidd", [](Result, View) {});
#elif defined(FAULT_SAVE)
  library.define("faulty::second(Tensor self) -> Tensor", "")
      .rule([](Rule& rule, View self) { rule.result_like(self); })
      .derivative({"slef"}, [](Backward&) {});
#endif
}
#endif
