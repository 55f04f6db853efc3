#include <cstdlib>
#include <string_view>

#include "core/check.h"
#include "dist/mpi_transport.h"

namespace lockstep::dist {

MpiOptions mpi_options() {
  MpiOptions options;
  const char* const value = std::getenv("LOCKSTEP_SHM");
  const std::string_view text = value == nullptr ? "" : value;
  LS_CHECK(text.empty() || text == "0" || text == "1", ConfigError,
           "[mpi] LOCKSTEP_SHM is \"{}\": expected 0 or 1.", text);
  options.shared_memory = text != "0";
  return options;
}

}  // namespace lockstep::dist
