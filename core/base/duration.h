#pragma once

#include <string_view>

namespace lockstep {

/// Parses seconds ("5400", "0.5"), "90:00" (minutes) or "1:30:00" (hours). Returns 0 for an empty
/// text and -1 for anything malformed.
double parse_duration(std::string_view text);

}  // namespace lockstep
