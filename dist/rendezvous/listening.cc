#include "dist/rendezvous/listening.h"

#include "core/base/error.h"

namespace lockstep::dist {

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

Endpoint listening(const Endpoint& address) {
  if (is_loopback(address.host)) return address;
  const bool v6 = address.host.find(':') != std::string::npos;
  return {v6 ? "::" : "0.0.0.0", address.port};
}

Endpoint any_port(bool local) {
  if (local) return {"127.0.0.1", 0};
  try {
    Endpoint all{"::", 0};
    (void)listen_at(all);
    return {"::", 0};
  } catch (const BackendError&) {
    return {"0.0.0.0", 0};
  }
}

}  // namespace lockstep::dist
