#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/descriptor.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::dist {

/// A port, chosen by the system, at which a rank listens for the others of its job. Not
/// thread-safe.
class OpenPort {
 public:
  /// Listens on loopback alone if `local`, else on all addresses. Throws BackendError.
  explicit OpenPort(bool local);

  const Descriptor& listener() const { return listener_; }
  /// From now on nobody listens there.
  void close() { listener_.reset(); }
  /// From now on the caller listens there.
  Descriptor take_listener() { return std::move(listener_); }

  /// Describes to other ranks how to reach this one, in lines: the port and, unless it is local,
  /// the host's addresses, first those given.
  std::string description(const std::vector<std::string>& first_addresses = {}) const;

 private:
  Descriptor listener_;
  uint16_t port_ = 0;
  bool local_;
};

/// The endpoints of a description, in the order in which to try them. `near`: whether the rank that
/// is described shares this one's loopback.
std::vector<Endpoint> endpoints_of(const std::string& description, bool near);

}  // namespace lockstep::dist
