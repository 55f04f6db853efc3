#include <sstream>

#include "configs/run.pb.h"
#include "configs/variables.h"
#include "tests/configs/examples.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_config_variables(Input input) {
  config::RunConfig config;
  config::Origins origins;
  config::merge_text(config, origins, config::kSmallest, "smallest.txtpb");
  config::Variables variables;
  std::istringstream lines(text_of(input));
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = std::min(line.find('='), line.size());
    variables["LOCKSTEP_" + line.substr(0, equals)] =
        line.substr(std::min(equals + 1, line.size()));
  }
  try {
    config::apply_variables(config, origins, variables);
    config::resolve(config, origins);
  } catch (const config::SourceError&) {
    return Outcome::kRefused;
  }
  const std::string written = config::to_text(config);
  require(config::to_text(config::load_text(written)) == written,
          "a config written out reads back to the same text");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
