#pragma once

#include <string>
#include <vector>

namespace lockstep::dist {

/// Returns the numeric addresses of all network interfaces that are up, except loopbacks, by which
/// other machines may reach this one; IPv4 first. Without those of one link (fe80::), which mean
/// nothing without the name that an interface has on the other machine. Throws BackendError.
std::vector<std::string> host_addresses();

}  // namespace lockstep::dist
