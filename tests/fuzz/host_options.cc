#include "kernels/host/host_options.h"

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_host_options(Input input) {
  HostOptions options;
  try {
    options = parse_host_options(text_of(input), "fuzzed");
  } catch (const ConfigError& error) {
    require(std::string(error.what()).starts_with("fuzzed: "), "an error names its source");
    return Outcome::kRefused;
  }
  host::check(options);
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
