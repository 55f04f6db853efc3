#include "launcher/launch/hostfile.h"

#include <set>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_hostfile(Input input) {
  std::vector<launcher::LaunchHost> hosts;
  try {
    hosts = launcher::parse_hostfile(text_of(input), "fuzzed");
  } catch (const ConfigError& error) {
    require(std::string(error.what()).starts_with("fuzzed:"), "an error names its source");
    return Outcome::kRefused;
  }
  require(!hosts.empty(), "a hostfile has hosts");
  std::set<std::string> names;
  for (const launcher::LaunchHost& host : hosts) {
    require(names.insert(host.name).second, "a host is listed once");
    require(host.slots >= 0 && host.slots <= 1 << 20, "a host has at most 2^20 slots");
  }
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
