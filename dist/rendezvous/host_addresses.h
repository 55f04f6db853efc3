#pragma once

#include <string>
#include <vector>

namespace lockstep::dist {

/// Addresses by which others may reach this machine, as numbers: of every network interface that is
/// up, without loopbacks; IPv4 first. Throws BackendError.
std::vector<std::string> host_addresses();

}  // namespace lockstep::dist
