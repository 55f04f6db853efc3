#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "dist/rendezvous/control_inbox.h"
#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {

/// Identity of a rank, and address of its job's store.
struct StoreOptions {
  std::string address = {};  ///< server address, "host:port"
  std::string job = {};      ///< as in StoreServerOptions
  std::string secret = {};
  int rank = 0;  ///< kAnyRank: the lowest that is free when it connects, but not the server's
  int world_size = 1;
  /// Whether the server's host may get its name later than this rank starts, as pods of Kubernetes
  /// do; else a name that does not resolve is an error at once.
  bool host_may_come = false;
  /// How long to try to reach the server, which may start later than this rank.
  std::chrono::milliseconds join_timeout{300'000};
  /// Default timeout of operations.
  std::chrono::milliseconds timeout{300'000};
  /// Time without an answer of the server's host after which the server is lost; at least 1 s.
  std::chrono::milliseconds silence{10'000};
};

/// A rank's connection to the store's server, with the thread that reads it; shared by Store and
/// StoreControl. Thread-safe.
class StoreConnection {
 public:
  /// Connects. Throws TimeoutError if the server does not answer within the join timeout,
  /// BackendError for a host that does not resolve and if no file descriptor is left, MismatchError
  /// for a different world size, DistError if the server refuses the rank for another reason.
  explicit StoreConnection(const StoreOptions& options);
  /// Messages sent before still arrive.
  ~StoreConnection();

  /// With the rank that this one has.
  const StoreOptions& options() const;
  ControlInbox& inbox();
  /// Address of this host by which it is connected with the server's.
  std::string own_host() const;

  /// Sends a request, waits for the answer and returns its text. Throws the error that the server
  /// answers, TimeoutError without an answer until a second after `timeout`, and PeerLostError if
  /// the connection ends.
  std::string request(StoreMessage message, std::chrono::milliseconds timeout);
  /// Sends a message without an answer; does nothing if the connection has ended.
  void send(const StoreMessage& message) noexcept;
  /// Tells the server that this rank cannot go on. `inbox` gets the job's first failure as reported
  /// by the server, or this one if the server does not report any.
  void fail(const std::string& text) noexcept;
  /// Announces that this rank ends normally, and waits up to 2 s for the acknowledgement.
  void leave() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist
