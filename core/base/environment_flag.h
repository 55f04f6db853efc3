#pragma once

#include <initializer_list>
#include <string_view>

namespace lockstep {

/// The environment variable `name`; "" if it is not set. Throws ConfigError naming the variable for
/// a value that is neither empty nor one of `accepted`. Not cached: call once and keep the result.
std::string_view environment_choice(const char* name,
                                    std::initializer_list<std::string_view> accepted);

/// Whether the environment variable `name` is "1". Not cached: call once and keep the result. One
/// of ours, LOCKSTEP_*, may be "0" otherwise; throws ConfigError for other values.
bool environment_flag(const char* name);

}  // namespace lockstep
