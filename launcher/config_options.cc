#include "launcher/config_options.h"

#include <fmt/format.h>

#include <cstdio>

#include "configs/run.pb.h"
#include "configs/variables.h"
#include "core/base/log_text.h"
#include "launcher/command_line.h"

namespace lockstep::launcher {

Option add_config_options(const Verb& verb, std::vector<std::string>& files,
                          std::vector<std::string>& overrides, const std::string& example) {
  const Option config =
      verb.option("config", files, "Config files (.txtpb); later ones win field by field")
          .required();
  verb.option("--set", overrides, "Override one field: " + example).one_value_each();
  return config;
}

config::RunConfig load_config(const std::vector<std::string>& files,
                              const std::vector<std::string>& overrides, config::Origins* origins) {
  for (const std::string& file : files) {
    const std::string moved = config::moved_config(file);
    if (!moved.empty()) write_log(stderr, fmt::format("hint: {} has moved to {}\n", file, moved));
  }
  return config::load(files, overrides, origins, config::process_variables());
}

}  // namespace lockstep::launcher
