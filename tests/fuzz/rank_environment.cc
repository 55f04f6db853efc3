#include "dist/rendezvous/rank_environment.h"

#include <map>
#include <sstream>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_rank_environment(Input input) {
  std::map<std::string, std::string> variables;
  std::istringstream lines(text_of(input));
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals != line.npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  dist::RankEnvironment found;
  try {
    found = dist::rank_environment([&](const char* name) {
      const auto value = variables.find(name);
      return value == variables.end() ? nullptr : value->second.c_str();
    });
  } catch (const ConfigError&) {
    return Outcome::kRefused;
  }
  require(found.rank >= 0 && found.rank < found.size, "the rank is one of the job's");
  require(!found.local_rank || !found.local_size || *found.local_rank < *found.local_size,
          "the local rank is one of the node's");
  require(!found.local_size || *found.local_size <= found.size, "a node has a part of the ranks");
  require(!found.master_port || *found.master_port > 0, "a port is above 0");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
