#include "core/base/environment_flag.h"

#include <cstdlib>
#include <string_view>

namespace lockstep {

bool environment_flag(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace lockstep
