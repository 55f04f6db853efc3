#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

class Verb;

/// Adds a run's config files to a verb, and the option `--set FIELD=VALUE`, which may be given
/// several times: what configs/load.h takes. Help shows `example`.
void add_config_options(const Verb& verb, std::vector<std::string>& files,
                        std::vector<std::string>& overrides,
                        const std::string& example = "optimizer.learning_rate=3e-4");

}  // namespace lockstep::launcher
