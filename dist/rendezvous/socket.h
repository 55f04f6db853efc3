#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/descriptor.h"

namespace lockstep::dist {

/// Where a server listens.
struct Endpoint {
  std::string host;  ///< name or address
  uint16_t port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
/// Of "host:port", "[::1]:port". Throws DistError.
Endpoint parse_endpoint(const std::string& text);
std::string to_string(const Endpoint& endpoint);

/// This machine's name; "localhost" where it has none.
std::string host_name();

// TCP sockets. They never block, send small messages at once, and are closed by exec.

/// Listens there; port 0 lets the system choose, and `endpoint` is told which. Throws BackendError
/// for a host that does not resolve or is not this machine, a port in use, and what else the system
/// refuses.
Descriptor listen_at(Endpoint& endpoint);

/// A connection that came, or none: `error` is errno then, EAGAIN where none waits.
struct Accepted {
  Descriptor socket;
  std::string from;  ///< "10.0.0.2:4711"
  int error = 0;
};
Accepted accept_at(const Descriptor& listener);

/// One try at connecting until `deadline`. Throws BackendError where trying again is of no use: for
/// a host that does not resolve, or no descriptor left.
struct Connected {
  Descriptor socket;
  std::string error;  ///< why there is none
};
Connected connect_to(const Endpoint& endpoint, std::chrono::steady_clock::time_point deadline);

/// Asks the system to find out when the other host is no longer there, within about `silence`, in
/// whole seconds and at least 2, while nothing is sent. The other host's system answers, whether or
/// not the process there runs. Throws BackendError.
void keep_alive(const Descriptor& socket, std::chrono::milliseconds silence);
/// How long ago the other host's system acknowledged anything, while bytes are under way to it; 0
/// where none are, or where the process there does not read and its host says so.
std::chrono::milliseconds unacknowledged_for(const Descriptor& socket) noexcept;

/// Waits until it can be read (`write`: written), at most until `deadline`; false then.
bool wait_for(const Descriptor& socket, bool write, std::chrono::steady_clock::time_point deadline);

/// Ends another thread's poll().
class WakeUp {
 public:
  /// Throws BackendError.
  WakeUp();
  /// Thread-safe.
  void wake() noexcept;
  /// Takes the wakings back that were until now.
  void clear() noexcept;
  int fd() const noexcept { return event_.get(); }

 private:
  Descriptor event_;
};

/// For poll(): until `deadline`, rounded up, at most `most`.
int poll_milliseconds(std::chrono::steady_clock::time_point deadline,
                      std::chrono::milliseconds most);

}  // namespace lockstep::dist
