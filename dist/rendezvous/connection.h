#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "core/base/descriptor.h"
#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {

/// Non-blocking messages over one socket. Sending and receiving share no state, so each may be done
/// by a different thread.
class Connection {
 public:
  Connection(Descriptor socket, size_t largest_message)
      : socket_(std::move(socket)), largest_(largest_message) {}

  const Descriptor& socket() const { return socket_; }

  /// Sends as much as the system accepts now and buffers the rest. Throws DistError for a message
  /// that is too large. After a socket error, which `receive` reports, messages are dropped.
  void send(const StoreMessage& message);
  /// Sends buffered bytes as far as the system accepts them.
  void flush() noexcept;
  size_t unsent_bytes() const { return out_.size() - sent_; }
  /// Shuts the socket down for writing after all that was sent.
  void end_sending() noexcept;

  /// Reads a bounded part of the bytes that have arrived. Returns false once the connection has
  /// ended; `why` is then the predicate of a sentence about the other side, such as "is lost: ...".
  bool receive(std::string& why);
  /// Returns the next message that has arrived completely. Throws DistError for bytes that are not
  /// a message or for one that is too large.
  std::optional<StoreMessage> next();
  void set_largest_message(size_t bytes) { largest_ = bytes; }

  /// Returns for how long the other host has not answered (unanswered_for), as observed by these
  /// calls. Call about every second, from one thread, after keep_alive.
  std::chrono::milliseconds silent_for(std::chrono::steady_clock::time_point now) noexcept;

 private:
  Descriptor socket_;
  std::string out_;
  size_t sent_ = 0;  ///< bytes of out_ that were sent
  bool broken_ = false;
  bool ending_ = false;

  std::string in_;
  size_t taken_ = 0;  ///< bytes of in_ that were returned by next()
  size_t largest_;

  std::optional<std::chrono::steady_clock::time_point> unanswered_since_;
};

}  // namespace lockstep::dist
