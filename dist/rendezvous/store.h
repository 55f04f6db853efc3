#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dist/rendezvous/store_connection.h"

namespace lockstep::dist {

/// Key-value store shared by the ranks of a job, for few and small values: addresses, identifiers,
/// data that must be equal on all ranks. The data is on the server
/// (dist/rendezvous/store_server.h), to which a rank has one connection.
///
/// Operations return when the server has done them. Waiting operations take a timeout (by default
/// that of the store) and throw a TimeoutError that names the missing keys or ranks. All throw
/// PeerLostError if the job has failed, naming the first failure, or if the server has ended, and
/// DistError for invalid arguments. Keys and values are any bytes, up to 16 MiB together.
///
/// Thread-safe; operations of several threads run concurrently. A child process made by fork() must
/// not use it, but may destroy it.
class Store {
 public:
  using Timeout = std::optional<std::chrono::milliseconds>;

  /// Connects, retrying until the join timeout. Throws the errors of StoreConnection.
  explicit Store(const StoreOptions& options);

  int rank() const;
  int world_size() const;
  /// Address of this host by which it is connected with the server's.
  std::string own_host() const;

  void set(const std::string& key, std::string value);
  /// Returns the value; waits until the key is set.
  std::string get(const std::string& key, Timeout timeout = {}) const;
  /// Adds to a number, which is 0 if the key is not set, and returns the sum. The value is stored
  /// as decimal text.
  int64_t add(const std::string& key, int64_t amount);
  /// Whether all keys are set.
  bool check(std::span<const std::string> keys) const;
  /// Waits until all keys are set.
  void wait(std::span<const std::string> keys, Timeout timeout = {}) const;
  /// Atomically sets the key to `desired` if its value is `expected`. Returns the resulting value.
  /// A key that is not set counts as an empty value.
  std::string compare_set(const std::string& key, std::string expected, std::string desired);
  /// Removes a key; returns whether it was set.
  bool erase(const std::string& key);

  /// Waits until every rank of the job has connected.
  void join(Timeout timeout = {}) const;
  /// Waits until every rank has called the barrier of that name, which may then be used again. A
  /// rank whose call timed out does not count.
  void barrier(const std::string& name, Timeout timeout = {});

  /// Used by StoreControl.
  const std::shared_ptr<StoreConnection>& connection() const { return connection_; }

 private:
  std::string request(StoreMessage message) const;
  std::string request_and_wait(StoreMessage message, Timeout timeout) const;

  std::shared_ptr<StoreConnection> connection_;
};

}  // namespace lockstep::dist
