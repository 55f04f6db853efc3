#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// Quotes a command line for a shell.
std::string shell_text(const std::vector<std::string>& command);

}  // namespace lockstep
