#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/dispatch/boxed_operator.h"
#include "core/dispatch/dispatcher.h"
#include "core/plugin/plugin_abi.h"

namespace lockstep {

/// The modules of device code that a plug-in has launched kernels from; the destructor unloads
/// them. Thread-safe.
class PluginImages {
 public:
  PluginImages() = default;
  ~PluginImages();
  PluginImages(const PluginImages&) = delete;
  PluginImages& operator=(const PluginImages&) = delete;

  void note(const void* image);

 private:
  Mutex mutex_;
  std::set<const void*> seen_ LS_GUARDED_BY(mutex_);
};

/// A function of a plug-in, and its registered data.
struct PluginFunction {
  ls_function function = nullptr;
  void* data = nullptr;
  const char* role = "";     ///< "kernel", "shape rule", ...
  const char* library = "";  ///< path, kept for the life of the process
  PluginImages* images = nullptr;

  explicit operator bool() const { return function != nullptr; }
};

struct PluginKernel {
  Key key = Key::kCPU;
  Strides strides = Strides::kAny;
  PluginFunction function;
};

/// Adapters that the dispatcher calls for operators and overrides of plug-ins. Each calls the C
/// function behind its data pointer, and converts its outcome to results or exceptions.
namespace plugin_entry {
Outputs rule(const Operator& op, std::span<const Value> arguments);
void body(const Operator& op, KeySet keys, Stack& stack);
void kernel(const PackedCall& call);
void dynamic_kernel(const Operator& op, KeySet keys, Stack& stack);
Gradients derivative(VjpContext& context, std::span<const Tensor> grads);
void batching(const Operator& op, uint64_t batched, Stack& stack);
}  // namespace plugin_entry

/// The table of host functions that plug-ins call.
const ls_host& plugin_host();

/// Calls `ls_plugin_init`. Throws the error that it reports, prefixed with the library's path.
void run_plugin_init(int (*init)(const ls_host*, ls_plugin*), ls_plugin& plugin);

}  // namespace lockstep

/// An operator that a plug-in is defining.
struct ls_op {
  ls_plugin* plugin = nullptr;
  std::string text;  ///< schema text as given
  lockstep::Schema schema;
  size_t fresh_count = 0;                       ///< results that are not arguments
  bool dynamic = false;                         ///< kernels make the results
  const lockstep::Operator* defined = nullptr;  ///< null until registered
  std::string doc;
  lockstep::PluginFunction rule;
  lockstep::PluginFunction body;
  lockstep::PluginFunction derivative;
  lockstep::PluginFunction batching;
  std::vector<std::string> saves;
  std::string not_differentiable_reason;
  lockstep::Autocast autocast = lockstep::Autocast::kNone;
  std::deque<lockstep::PluginKernel> kernels;
  bool in_place = false;
  bool out = false;
};

/// Everything that a plug-in has registered.
struct ls_plugin {
  struct Override {
    std::string op;
    lockstep::PluginKernel kernel;
  };
  struct Pass {
    std::string name;
    ls_graph_pass function = nullptr;
    void* data = nullptr;
  };

  const char* library = "";
  bool initialising = true;
  std::unique_ptr<lockstep::PluginImages> images = std::make_unique<lockstep::PluginImages>();
  std::vector<std::unique_ptr<ls_op>> operators;
  std::deque<Override> overrides;
  std::vector<Pass> passes;
};
