#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

class Verb;

/// Adds the inputs of config::load (configs/load.h) to a verb: config files as positional
/// arguments, and the repeatable option `--set FIELD=VALUE`. Help shows `example`.
void add_config_options(const Verb& verb, std::vector<std::string>& files,
                        std::vector<std::string>& overrides,
                        const std::string& example = "optimizer.learning_rate=3e-4");

}  // namespace lockstep::launcher
