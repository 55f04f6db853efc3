#pragma once

#include <string>
#include <vector>

#include "launcher/launch/launch_options.h"

namespace lockstep::launcher {

/// Hosts in the text of a hostfile as Open MPI reads it: a line is NAME [slots=N] [max_slots=N],
/// "#" begins a comment, a name given again adds to its slots. Throws ConfigError, beginning with
/// "`file`:LINE: ", for the first line that is something else, and for a file without hosts.
std::vector<LaunchHost> parse_hostfile(const std::string& text, const std::string& file);

}  // namespace lockstep::launcher
