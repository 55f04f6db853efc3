#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/descriptor.h"
#include "core/base/error.h"

namespace lockstep::dist {

/// Address of a server.
struct Endpoint {
  std::string host;  ///< name or address
  uint16_t port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
/// Parses "host:port" or "[::1]:port". Throws DistError.
Endpoint parse_endpoint(const std::string& text);
std::string to_string(const Endpoint& endpoint);

/// This machine's name, or "localhost" if it has none.
std::string host_name();

// TCP sockets: non-blocking, close-on-exec, and with TCP_NODELAY.

/// Thrown if another process listens at an address.
class AddressInUse : public BackendError {
 public:
  using BackendError::BackendError;
};

/// Thrown for a host that does not resolve.
class UnknownHost : public BackendError {
 public:
  using BackendError::BackendError;
};

/// Listens at `endpoint`; if its port is 0, the system chooses one and it is set. Throws
/// AddressInUse, UnknownHost, and BackendError for a host that is not this machine and for other
/// system errors.
Descriptor listen_at(Endpoint& endpoint);

/// Whether the host, a name or an address, is this machine. Throws UnknownHost.
bool is_own_host(const std::string& host);

/// An accepted connection. Without one, `error` is the errno: EAGAIN if none is waiting.
struct Accepted {
  Descriptor socket;
  std::string from;  ///< "10.0.0.2:4711"
  int error = 0;
};
Accepted accept_at(const Descriptor& listener);

/// Tries to connect once, until `deadline`. Throws UnknownHost, and BackendError if no file
/// descriptor is left.
struct Connected {
  Descriptor socket;
  std::string error;  ///< why `socket` is empty
};
Connected connect_to(const Endpoint& endpoint, std::chrono::steady_clock::time_point deadline);

/// Begins to connect to a numeric address and does not wait: the socket is writable once that has
/// ended, and `connecting_error` says how. Throws BackendError if no file descriptor is left.
Connected begin_connecting(const Endpoint& endpoint);
/// Why such a socket, which is writable, is not connected; empty if it is.
std::string connecting_error(const Descriptor& socket);

/// This machine's end of a connection; empty if it has none.
Endpoint own_end_of(const Descriptor& socket);

/// Enables TCP keepalive, so that a vanished host is detected within about `silence` (in whole
/// seconds, at least 2) while nothing is sent. The other host's system answers even if the process
/// there is stopped. Throws BackendError.
void keep_alive(const Descriptor& socket, std::chrono::milliseconds silence);
/// Returns for how long the other host has acknowledged neither bytes in flight to it nor, while
/// there are none, what keep_alive asks every second: the system itself gives up no connection
/// whose packets it cannot send at all, as when this host's own link is down. The process there may
/// be stopped.
std::chrono::milliseconds unanswered_for(const Descriptor& socket) noexcept;

/// Waits until the socket is readable (`write`: writable). Returns false at `deadline`.
bool wait_for(const Descriptor& socket, bool write, std::chrono::steady_clock::time_point deadline);

/// Wakes another thread from poll().
class WakeUp {
 public:
  /// Throws BackendError.
  WakeUp();
  /// Thread-safe.
  void wake() noexcept;
  /// Resets the event after a wake.
  void clear() noexcept;
  int fd() const noexcept { return event_.get(); }

 private:
  Descriptor event_;
};

/// Returns the timeout for poll(): milliseconds to `deadline`, rounded up, at most `most`.
int poll_milliseconds(std::chrono::steady_clock::time_point deadline,
                      std::chrono::milliseconds most);

}  // namespace lockstep::dist
