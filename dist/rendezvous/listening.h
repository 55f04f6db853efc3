#pragma once

#include <string_view>

#include "dist/rendezvous/socket.h"

namespace lockstep::dist {

/// Whether a host, as it is named, can be reached from itself alone.
bool is_loopback(std::string_view host);
/// Where a process listens that others reach at `address`, of this host: a name may belong to one
/// of its addresses alone, while other hosts know it by another.
Endpoint listening(const Endpoint& address);
/// Where a process listens at a port that the system chooses: on loopback alone if `local`, else at
/// all addresses of this host, whether or not it has IPv6.
Endpoint any_port(bool local);

}  // namespace lockstep::dist
