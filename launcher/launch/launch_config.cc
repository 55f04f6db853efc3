#include "launcher/launch/launch_config.h"

#include <algorithm>

#include "configs/launch.pb.h"
#include "core/base/check.h"

namespace lockstep::launcher {
namespace {

/// Calls `read` and prefixes its errors with the field's name.
template <class Read>
void field(const char* name, Read read) {
  try {
    read();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("launch.{}: {}", name, error.what()));
  }
}

void apply_places(const config::LaunchConfig& config, LaunchOptions& options) {
  for (const LaunchContext& context : options.contexts) {
    if (!context.hosts.empty() || !context.hostfile.empty()) return;
  }
  if (options.nodes == 1) return;  // --standalone
  std::vector<LaunchHost> hosts;
  field("hosts", [&] {
    for (const std::string& text : config.hosts()) {
      for (const LaunchHost& host : parse_hosts(text)) hosts.push_back(host);
    }
  });
  LS_CHECK(hosts.empty() || config.hostfile().empty(), ConfigError,
           "launch.hostfile: hosts are named twice: expected launch.hosts or launch.hostfile.");
  for (LaunchContext& context : options.contexts) {
    context.hosts = hosts;
    context.hostfile = config.hostfile();
  }
}

void apply_policy(const std::string& value, const char* name, const char* option,
                  std::string& target) {
  if (value.empty() || !target.empty()) return;
  field(name, [&] { check_policy(option, value); });
  target = value;
}

}  // namespace

void apply_launch_config(const config::LaunchConfig& config, LaunchOptions& options) {
  apply_places(config, options);
  const bool counted =
      options.ranks_per_node != 0 ||
      std::ranges::any_of(options.contexts, [](const auto& context) { return context.ranks > 0; });
  if (!counted && options.contexts.size() == 1) options.contexts[0].ranks = config.np();
  apply_policy(config.map_by(), "map_by", "map-by", options.map_by);
  apply_policy(config.bind_to(), "bind_to", "bind-to", options.bind_to);
  for (LaunchContext& context : options.contexts) {
    for (const std::string& variable : config.env()) {
      const std::string name = variable.substr(0, variable.find('='));
      LS_CHECK(!name.empty(), ConfigError, "launch.env: {:?}: expected NAME or NAME=value.",
               variable);
      const bool given = std::ranges::any_of(context.variables, [&](const std::string& each) {
        return each.substr(0, each.find('=')) == name;
      });
      if (!given) context.variables.push_back(variable);
    }
  }
  for (const std::string& parameter : config.mca()) {
    const size_t equals = parameter.find('=');
    LS_CHECK(equals != parameter.npos && equals > 0, ConfigError,
             "launch.mca: {:?}: expected NAME=value.", parameter);
    const std::string name = parameter.substr(0, equals);
    const bool given =
        std::ranges::any_of(options.mca, [&](const auto& each) { return each.first == name; });
    if (!given) options.mca.emplace_back(name, parameter.substr(equals + 1));
  }
  if (options.timeout_seconds == 0) options.timeout_seconds = config.timeout_seconds();
  if (!options.max_restarts && !options.exec) options.max_restarts = config.max_restarts();
  if (options.output_folder.empty()) options.output_folder = config.output_folder();
}

}  // namespace lockstep::launcher
