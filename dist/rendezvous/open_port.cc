#include "dist/rendezvous/open_port.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "dist/rendezvous/host_addresses.h"
#include "dist/rendezvous/listening.h"

namespace lockstep::dist {

OpenPort::OpenPort(bool local) : local_(local) {
  Endpoint endpoint = any_port(local);
  listener_ = listen_at(endpoint);
  port_ = endpoint.port;
}

std::string OpenPort::description(const std::vector<std::string>& first_addresses) const {
  std::string text = fmt::format("{}", port_);
  if (local_) return text;
  std::vector<std::string> addresses = first_addresses;
  for (std::string& address : host_addresses()) {
    if (std::ranges::find(addresses, address) == addresses.end()) {
      addresses.push_back(std::move(address));
    }
  }
  for (const std::string& address : addresses) text += "\n" + address;
  return text;
}

std::vector<Endpoint> endpoints_of(const std::string& description, bool near) {
  std::istringstream lines(description);
  uint16_t port = 0;
  lines >> port;
  std::vector<Endpoint> endpoints;
  if (near) endpoints.push_back({"127.0.0.1", port});
  for (std::string host; lines >> host;) endpoints.push_back({host, port});
  return endpoints;
}

}  // namespace lockstep::dist
