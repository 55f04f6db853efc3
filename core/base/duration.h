#pragma once

#include <string_view>

namespace lockstep {

/// Seconds in "5400", "0.5", "90:00" (minutes) or "1:30:00" (hours). 0 for an empty text, -1 for
/// anything else.
double parse_duration(std::string_view text);

}  // namespace lockstep
