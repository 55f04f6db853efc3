#include "core/plugin/graph_passes.h"

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/plugin/plugin_call.h"

namespace lockstep {

namespace {

/// The passes of one plug-in.
struct Passes {
  std::vector<ls_plugin::Pass> all;
  const char* library = "";
};

/// Keeps those of the plug-ins that are loaded; entries of others have ended.
class PassList {
 public:
  void add(const std::shared_ptr<Passes>& passes) {
    const MutexLock lock(mutex_);
    std::erase_if(loaded_, [](const std::weak_ptr<Passes>& each) { return each.expired(); });
    loaded_.push_back(passes);
  }
  std::vector<std::weak_ptr<Passes>> loaded() const {
    const MutexLock lock(mutex_);
    return loaded_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::weak_ptr<Passes>> loaded_ LS_GUARDED_BY(mutex_);
};

PassList& pass_list() {
  static PassList list;
  return list;
}

std::string run(const ls_plugin::Pass& pass, const char* library, const std::string& graph) {
  PluginError::clear();
  ls_text result;
  checked_call(
      pass.name, [&] { return fmt::format("the graph pass of {}", library); },
      [&] { return pass.function(pass.data, graph.c_str(), &result); });
  return result.text.value_or(graph);
}

}  // namespace

std::vector<PluginPass> plugin_passes() {
  std::vector<PluginPass> passes;
  for (const std::weak_ptr<Passes>& each : pass_list().loaded()) {
    const std::shared_ptr<Passes> of_plugin = each.lock();
    if (!of_plugin) continue;
    for (size_t i = 0; i < of_plugin->all.size(); ++i) {
      const std::string name = of_plugin->all[i].name;
      passes.push_back({name, [each, name, i](const std::string& graph) {
                          const std::shared_ptr<Passes> loaded = each.lock();
                          LS_CHECK(loaded != nullptr, DispatchError,
                                   "[{}] the plug-in of this graph pass was unloaded.", name);
                          return run(loaded->all[i], loaded->library, graph);
                        }});
    }
  }
  return passes;
}

std::shared_ptr<void> register_passes(const ls_plugin& plugin) {
  if (plugin.passes.empty()) return nullptr;
  auto passes = std::make_shared<Passes>();
  passes->all = plugin.passes;
  passes->library = plugin.library;
  pass_list().add(passes);
  return passes;
}

}  // namespace lockstep
