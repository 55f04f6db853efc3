#include "launcher/config_options.h"

#include "launcher/command_line.h"

namespace lockstep::launcher {

void add_config_options(const Verb& verb, std::vector<std::string>& files,
                        std::vector<std::string>& overrides, const std::string& example) {
  verb.option("config", files, "Config files (.txtpb); later ones win field by field").required();
  verb.option("--set", overrides, "Override one field: " + example).one_value_each();
}

}  // namespace lockstep::launcher
