#include "launcher/load_option.h"

#include <CLI/CLI.hpp>

namespace lockstep::launcher {

void add_load_option(CLI::App& verb, std::vector<std::string>& files) {
  verb.add_option("--load", files, "Shared library with operators or kernels of your own")
      ->allow_extra_args(false);
}

std::vector<Plugin> load_plugins(const std::vector<std::string>& files) {
  std::vector<Plugin> plugins;
  for (const std::string& file : files) plugins.push_back(load_library(file));
  return plugins;
}

}  // namespace lockstep::launcher
