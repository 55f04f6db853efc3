#pragma once

#include <string>
#include <vector>

#include "configs/load.h"

namespace lockstep::launcher {

class Option;
class Verb;

/// Adds the inputs of config::load (configs/load.h) to a verb: config files as positional
/// arguments, and the repeatable option `--set FIELD=VALUE`. Help shows `example`. Returns the
/// argument of the files, of which one is required.
Option add_config_options(const Verb& verb, std::vector<std::string>& files,
                          std::vector<std::string>& overrides,
                          const std::string& example = "optimizer.learning_rate=3e-4");

/// Loads a run's config with the process's environment variables (configs/load.h). Prints a hint
/// when a file was found where the example configs have moved.
config::RunConfig load_config(const std::vector<std::string>& files,
                              const std::vector<std::string>& overrides = {},
                              config::Origins* origins = nullptr);

}  // namespace lockstep::launcher
