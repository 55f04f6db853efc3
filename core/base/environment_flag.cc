#include "core/base/environment_flag.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/check.h"

namespace lockstep {

std::string_view environment_choice(const char* name,
                                    std::initializer_list<std::string_view> accepted) {
  const char* const text = std::getenv(name);
  const std::string_view value = text == nullptr ? "" : text;
  LS_CHECK(value.empty() || std::ranges::find(accepted, value) != accepted.end(), ConfigError,
           "[environment] {} cannot be \"{}\": expected {}.", name, value,
           fmt::join(accepted, " or "));
  return value;
}

bool environment_flag(const char* name) {
  if (std::string_view(name).starts_with("LOCKSTEP_")) {
    return environment_choice(name, {"0", "1"}) == "1";
  }
  const char* const value = std::getenv(name);
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace lockstep
