#include "dist/rendezvous/listening.h"

namespace lockstep::dist {

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

Endpoint listening(const Endpoint& address) {
  if (is_loopback(address.host)) return address;
  const bool v6 = address.host.find(':') != std::string::npos;
  return {v6 ? "::" : "0.0.0.0", address.port};
}

}  // namespace lockstep::dist
