#include <sstream>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/configs/examples.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_config_assignment(Input input) {
  config::RunConfig config;
  config::Origins origins;
  config::merge_text(config, origins, config::kSmallest, "smallest.txtpb");
  std::istringstream lines(text_of(input));
  for (std::string line; std::getline(lines, line);) {
    const std::string before = config.ShortDebugString();
    try {
      config::set_value(config, origins, line, "fuzzed");
    } catch (const config::SourceError& error) {
      require(error.where() == "fuzzed", "an error names the assignment");
      require(config.ShortDebugString() == before, "a refused assignment changes nothing");
      return Outcome::kRefused;
    }
  }
  try {
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
