#include "launcher/load_option.h"

#include "launcher/command_line.h"

namespace lockstep::launcher {

void add_load_option(const Verb& verb, std::vector<std::string>& files) {
  verb.option("--load", files, "Shared library with operators or kernels of your own")
      .one_value_each();
}

std::vector<Plugin> load_plugins(const std::vector<std::string>& files) {
  std::vector<Plugin> plugins;
  for (const std::string& file : files) plugins.push_back(load_library(file));
  return plugins;
}

}  // namespace lockstep::launcher
