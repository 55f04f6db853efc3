#pragma once

#include <string>
#include <vector>

#include "launcher/launch/launch_options.h"

namespace lockstep::launcher {

/// Parses the text of a hostfile as Open MPI does: a line is NAME [slots=N] [max_slots=N], "#"
/// begins a comment, a repeated name adds slots. Throws ConfigError, beginning with "`file`:LINE:
/// ", for the first malformed line, and for a file without hosts.
std::vector<LaunchHost> parse_hostfile(const std::string& text, const std::string& file);

}  // namespace lockstep::launcher
