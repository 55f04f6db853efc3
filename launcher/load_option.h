#pragma once

#include <string>
#include <vector>

#include "core/plugin/plugin.h"

namespace lockstep::launcher {

class Verb;

/// Adds the option `--load FILE` to a verb; it may be given several times.
void add_load_option(const Verb& verb, std::vector<std::string>& files);

/// Loads them in order; they stay loaded as long as the result lives.
[[nodiscard]] std::vector<Plugin> load_plugins(const std::vector<std::string>& files);

}  // namespace lockstep::launcher
