#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "core/base/descriptor.h"
#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {

/// Messages over one socket, never blocking. What is sent and what is received share nothing: each
/// may be a different thread's affair.
class Connection {
 public:
  Connection(Descriptor socket, size_t largest_message)
      : socket_(std::move(socket)), largest_(largest_message) {}

  const Descriptor& socket() const { return socket_; }

  /// Sends as much as the system takes now and keeps the rest. Throws DistError for a message that
  /// is too large. After an error, which `receive` will tell, there is nothing left to send.
  void send(const StoreMessage& message);
  void flush() noexcept;
  size_t unsent_bytes() const { return out_.size() - sent_; }
  /// The other side reads the end after all that was sent.
  void end_sending() noexcept;

  /// Takes what has arrived, a bounded part at a time; false once the other side has ended, and
  /// `why` is what it did, as "is lost: ...".
  bool receive(std::string& why);
  /// The next that has arrived whole. Throws DistError for what is no message, or too large.
  std::optional<StoreMessage> next();
  void set_largest_message(size_t bytes) { largest_ = bytes; }

  /// For how long, as far as seen here, the other side's host has acknowledged nothing of what is
  /// under way to it. To be called about every second, by one thread.
  std::chrono::milliseconds silent_for(std::chrono::steady_clock::time_point now) noexcept;

 private:
  Descriptor socket_;
  std::string out_;
  size_t sent_ = 0;  ///< of out_
  bool broken_ = false;
  bool ending_ = false;

  std::string in_;
  size_t taken_ = 0;  ///< of in_
  size_t largest_;

  std::optional<std::chrono::steady_clock::time_point> unacknowledged_since_;
};

}  // namespace lockstep::dist
