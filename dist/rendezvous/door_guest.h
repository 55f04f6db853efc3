#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dist/rendezvous/connection.h"

namespace lockstep::dist {

/// A connection at a Door: what has been said, and what is still to be said. Not thread-safe.
class DoorGuest {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Standing { kStranger, kKnown, kBuilding, kReady, kLeaving, kGone };
  /// For it to say what it has to say first, and to take what it is called with.
  static constexpr std::chrono::seconds kTimeToSay{10};
  /// One that has not answered for so long is not called: the ranks would wait for it.
  static constexpr std::chrono::seconds kFresh{3};

  DoorGuest(Descriptor socket, std::string address)
      : connection(std::move(socket), kLargestHello), from(std::move(address)) {}

  Connection connection;
  std::string from;  ///< "10.0.0.2:4711"
  Standing standing = Standing::kStranger;
  std::string place;
  std::optional<Clock::time_point> give_up = Clock::now() + kTimeToSay;  ///< when it is closed
  Clock::time_point answered;
  bool takes = false;      ///< what is given
  bool is_called = false;  ///< to join the ranks

  bool can_be_called(Clock::time_point now) const {
    return standing == Standing::kReady && now - answered < kFresh;
  }
  /// Whether what is given next is for it.
  bool is_taking() const { return takes && standing == Standing::kReady; }

  void give(std::shared_ptr<const StoreMessage> part, size_t bytes);
  /// Takes nothing more; what waits for it is dropped.
  void end_taking();
  /// It has answered the message with this id: it has taken those up to it.
  void has_taken(uint64_t id, Clock::time_point now);
  size_t untaken_bytes() const { return untaken_bytes_; }
  /// Sends `message` behind what is given to it, and ends.
  void call(StoreMessage message, Clock::time_point now);

  /// Sends a part of what waits for it.
  void send_more();
  /// Whether `send_more` would send something now.
  bool has_more() const;
  /// Sends all of what waits for one that is called; drops what waits for others.
  void send_rest();

 private:
  std::deque<std::shared_ptr<const StoreMessage>> waiting_;
  std::deque<std::pair<uint64_t, size_t>> untaken_;  ///< ids and bytes
  size_t untaken_bytes_ = 0;
};

}  // namespace lockstep::dist
