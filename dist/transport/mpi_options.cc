#include <cstdlib>
#include <string_view>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/parse_number.h"
#include "dist/transport/mpi_transport.h"

namespace lockstep::dist {

namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

MpiOptions mpi_options() {
  MpiOptions options;
  options.shared_memory = environment_choice("LOCKSTEP_SHM", {"0", "1"}) != "0";
  if (const std::string_view limit = variable("LOCKSTEP_START_LIMIT"); !limit.empty()) {
    const auto seconds = parse_number<int>(limit);
    LS_CHECK(seconds && *seconds >= 1 && *seconds <= 86'400, ConfigError,
             "[mpi] LOCKSTEP_START_LIMIT is \"{}\": expected seconds, 1 to 86400.", limit);
    options.start_limit = std::chrono::seconds(*seconds);
  }
  return options;
}

}  // namespace lockstep::dist
