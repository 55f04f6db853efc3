#include "dist/rendezvous/socket.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

std::string reason(int error) { return std::strerror(error); }

/// Resolves the host; returns null for a temporary failure of name resolution.
Addresses resolve(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int result =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (result == EAI_AGAIN) return {nullptr, ::freeaddrinfo};
  LS_CHECK(result == 0, dist::UnknownHost,
           "[store] the host of the store's address {} does not resolve: {}. Check its spelling, "
           "or give an address.",
           to_string(endpoint), result == EAI_SYSTEM ? reason(errno) : ::gai_strerror(result));
  return {found, ::freeaddrinfo};
}

void set_option(int socket, int level, int option, int value) {
  LS_CHECK(::setsockopt(socket, level, option, &value, sizeof value) == 0, BackendError,
           "[store] the system refuses option {} of a socket: {}.", option, reason(errno));
}

Descriptor open_socket(const addrinfo& address) {
  return Descriptor(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                             address.ai_protocol));
}

Endpoint endpoint_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    (void)::inet_ntop(AF_INET6, &v6.sin6_addr, host.data(), host.size());
    return {host.data(), ntohs(v6.sin6_port)};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  (void)::inet_ntop(AF_INET, &v4.sin_addr, host.data(), host.size());
  return {host.data(), ntohs(v4.sin_port)};
}

/// `name` is getsockname or getpeername.
template <class Name>
Endpoint end_of(const Descriptor& socket, Name name) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (name(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return endpoint_of(address);
}

/// Returns 0, or the errno if it cannot listen at the address.
int try_to_listen(const addrinfo& address, Descriptor& socket) {
  socket = open_socket(address);
  if (!socket) return errno;
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) return errno;
  if (::listen(socket.get(), SOMAXCONN) != 0) return errno;
  return 0;
}

/// Returns 0, also where connecting has only begun, or the errno.
int begin_to_connect(const addrinfo& address, Descriptor& socket) {
  socket = open_socket(address);
  if (!socket) return errno;
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  return errno == EINPROGRESS || errno == EINTR ? 0 : errno;
}

/// Returns 0, or the errno with which connecting has ended.
int end_to_connect(const Descriptor& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return error;
  // TCP simultaneous open: if no process listens at a port of the ephemeral range, the socket can
  // be connected to itself.
  if (end_of(socket, ::getsockname) == end_of(socket, ::getpeername)) return ECONNREFUSED;
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return 0;
}

/// Returns 0, or the errno if it cannot connect to the address.
int try_to_connect(const addrinfo& address, Clock::time_point deadline, Descriptor& socket) {
  if (const int error = begin_to_connect(address, socket); error != 0) return error;
  if (!wait_for(socket, true, deadline)) return ETIMEDOUT;
  return end_to_connect(socket);
}

void check_descriptors(int error, const Endpoint& endpoint) {
  LS_CHECK(error != EMFILE && error != ENFILE, BackendError,
           "[store] no file descriptor is left to connect to {}: {}. Raise the limit (ulimit "
           "-n).",
           to_string(endpoint), reason(error));
}

}  // namespace

Endpoint parse_endpoint(const std::string& text) {
  const auto check = [&](bool holds, const char* expected) {
    LS_CHECK(holds, DistError, "[store] \"{}\" is no address of a store: expected {}.", text,
             expected);
  };
  const size_t colon = text.rfind(':');
  check(colon != std::string::npos && colon > 0, "HOST:PORT, as in node1:29500");
  Endpoint endpoint{text.substr(0, colon), 0};
  if (endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  } else {
    check(endpoint.host.find(':') == std::string::npos, "brackets around an IPv6 address");
  }
  check(!endpoint.host.empty(), "a host before the port");
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
  check(error == std::errc() && stop == end, "a port between 0 and 65535");
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint.host, v6 ? "]" : "", endpoint.port);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

Descriptor listen_at(Endpoint& endpoint) {
  const Addresses addresses = resolve(endpoint, AI_PASSIVE);
  LS_CHECK(addresses != nullptr, BackendError,
           "[store] the host of the store's address {} does not resolve now. Try again, or give "
           "an address.",
           to_string(endpoint));
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Descriptor socket;
    error = try_to_listen(*address, socket);
    if (error != 0) continue;
    endpoint.port = end_of(socket, ::getsockname).port;
    return socket;
  }
  const std::string where = to_string(endpoint);
  LS_CHECK(error != EADDRINUSE, dist::AddressInUse,
           "[store] cannot listen at {}: the port is in use, by another job or program. Choose "
           "another, or 0 for any that is free.",
           where);
  LS_CHECK(error != EADDRNOTAVAIL, BackendError,
           "[store] cannot listen at {}: that is not an address of this machine ({}). The store "
           "runs where rank 0 does.",
           where, host_name());
  throw BackendError(fmt::format("[store] cannot listen at {}: {}.", where, reason(error)));
}

bool is_own_host(const std::string& host) {
  const Addresses addresses = resolve({host, 0}, 0);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const Descriptor socket = open_socket(*address);
    if (socket && ::bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0) return true;
  }
  return false;
}

Accepted accept_at(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  Accepted accepted;
  const int fd = ::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &length,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    accepted.error = errno;
    return accepted;
  }
  accepted.socket = Descriptor(fd);
  accepted.from = to_string(endpoint_of(address));
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  return accepted;
}

Connected connect_to(const Endpoint& endpoint, Clock::time_point deadline) {
  const Addresses addresses = resolve(endpoint, 0);
  if (!addresses) return {{}, "its name does not resolve now"};
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Descriptor socket;
    error = try_to_connect(*address, deadline, socket);
    if (error == 0) return {std::move(socket), {}};
    check_descriptors(error, endpoint);
  }
  return {{}, reason(error)};
}

Connected begin_connecting(const Endpoint& endpoint) {
  const Addresses addresses = resolve(endpoint, AI_NUMERICHOST);
  if (!addresses) return {{}, "it is no address"};
  Descriptor socket;
  const int error = begin_to_connect(*addresses, socket);
  check_descriptors(error, endpoint);
  if (error != 0) return {{}, reason(error)};
  return {std::move(socket), {}};
}

std::string connecting_error(const Descriptor& socket) {
  const int error = end_to_connect(socket);
  return error == 0 ? "" : reason(error);
}

Endpoint own_end_of(const Descriptor& socket) { return end_of(socket, ::getsockname); }

void keep_alive(const Descriptor& socket, std::chrono::milliseconds silence) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(silence).count();
  set_option(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket.get(), IPPROTO_TCP, TCP_KEEPCNT,
             static_cast<int>(std::clamp<int64_t>(seconds - 1, 1, 100)));
  set_option(socket.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

std::chrono::milliseconds unanswered_for(const Descriptor& socket) noexcept {
  // By then keep_alive has asked, and the answer had a second to come.
  constexpr std::chrono::milliseconds kAsked(2'000);
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  const std::chrono::milliseconds last(std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv));
  // If the other side's window is closed, unsent bytes are not in flight.
  return info.tcpi_unacked > 0 ? last : std::max(last - kAsked, std::chrono::milliseconds(0));
}

bool wait_for(const Descriptor& socket, bool write, Clock::time_point deadline) {
  pollfd entry{socket.get(), static_cast<short>(write ? POLLOUT : POLLIN), 0};
  while (true) {
    const int ready = ::poll(&entry, 1, poll_milliseconds(deadline, std::chrono::hours(1)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) {
      throw BackendError(fmt::format("[store] cannot wait for a socket: {}.", reason(errno)));
    }
    if (Clock::now() >= deadline) return false;
  }
}

WakeUp::WakeUp() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  LS_CHECK(event_.get() >= 0, BackendError,
           "[store] no file descriptor is left: {}. Raise the limit (ulimit -n).", reason(errno));
}

void WakeUp::wake() noexcept {
  const uint64_t one = 1;
  // Fails only if the counter is at its maximum: the thread will wake anyway.
  (void)!::write(event_.get(), &one, sizeof one);
}

void WakeUp::clear() noexcept {
  uint64_t wakings = 0;
  (void)!::read(event_.get(), &wakings, sizeof wakings);
}

int poll_milliseconds(Clock::time_point deadline, std::chrono::milliseconds most) {
  const auto now = Clock::now();
  if (deadline <= now) return 0;
  if (deadline - now >= most) return static_cast<int>(most.count());
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count());
}

}  // namespace lockstep::dist
