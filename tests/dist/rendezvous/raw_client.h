#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "dist/rendezvous/socket.h"

namespace lockstep::dist {

// A client of a store's server that sends any bytes.

inline Descriptor connect_raw(const std::string& address) {
  Connected connected = connect_to(parse_endpoint(address),
                                   std::chrono::steady_clock::now() + std::chrono::seconds(5));
  EXPECT_TRUE(connected.socket) << connected.error;
  return std::move(connected.socket);
}

inline void send_raw(const Descriptor& socket, const std::string& bytes) {
  // May fail, as the server may have closed the connection.
  (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Whether the peer closes the connection within 5 s.
inline bool is_ended(const Descriptor& socket) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  char bytes[4096];
  while (wait_for(socket, false, deadline)) {
    const ssize_t got = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

}  // namespace lockstep::dist
