#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "dist/rendezvous/control_inbox.h"
#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {

/// Who a rank is, and where its job's store is.
struct StoreOptions {
  std::string address;  ///< of the server, "host:port"
  std::string job;      ///< as StoreServerOptions
  std::string secret;
  int rank = 0;
  int world_size = 1;
  /// How long to try to reach the server, which may start later.
  std::chrono::milliseconds join_timeout{300'000};
  /// Of an operation that is given none of its own.
  std::chrono::milliseconds timeout{300'000};
  /// After so long without a sign of the server's host the server counts as lost; at least 1 s.
  std::chrono::milliseconds silence{10'000};
};

/// A rank's one connection with the store's server, and the thread that reads it. Store and
/// StoreControl are its two faces. Thread-safe.
class StoreConnection {
 public:
  /// Connects. Throws TimeoutError where the server does not answer within the join timeout,
  /// BackendError for a host that does not resolve and where no descriptor is left, MismatchError
  /// for another world size, DistError where the server refuses the rank otherwise.
  explicit StoreConnection(const StoreOptions& options);
  /// What was sent before still arrives.
  ~StoreConnection();

  const StoreOptions& options() const;
  ControlInbox& inbox();

  /// Sends, and waits for the answer's text. Throws what the server answers; TimeoutError where it
  /// says nothing until a second after `timeout`; PeerLostError where the connection ends.
  std::string request(StoreMessage message, std::chrono::milliseconds timeout);
  /// Sends what has no answer; nothing where the connection has ended.
  void send(const StoreMessage& message) noexcept;
  /// Tells the server that this rank cannot go on, and `inbox` what the job's first failure is:
  /// once the server has told, or by itself where that cannot.
  void fail(const std::string& text) noexcept;
  /// Says that this rank ends as it should, and waits up to 2 s until that has been heard.
  void leave() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist
