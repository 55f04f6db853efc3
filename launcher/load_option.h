#pragma once

#include <string>
#include <vector>

#include "core/plugin/plugin.h"

namespace lockstep::launcher {

class Verb;

/// Adds the repeatable option `--load FILE` to a verb: plug-ins to load.
void add_load_option(const Verb& verb, std::vector<std::string>& files);

/// Loads plug-ins in order; they stay loaded as long as the result exists.
[[nodiscard]] std::vector<Plugin> load_plugins(const std::vector<std::string>& files);

}  // namespace lockstep::launcher
