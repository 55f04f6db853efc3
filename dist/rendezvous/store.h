#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dist/rendezvous/store_connection.h"

namespace lockstep::dist {

/// Keys and values that the ranks of a job share, small and few: addresses, identifiers, what must
/// be equal on all. They are on the server (dist/rendezvous/store_server.h); a rank has one
/// connection to it.
///
/// Operations return when the server has done them. Those that wait take a timeout, the store's own
/// where none is given, and throw TimeoutError that names what was waited for and the ranks that
/// have not come; PeerLostError once the job has failed, naming the first failure, or the server is
/// gone; DistError where they cannot be right. Keys and values are any bytes, 16 MiB together.
///
/// Thread-safe; operations of several threads are under way side by side. In a child made by fork()
/// it must not be used, and may be destroyed.
class Store {
 public:
  using Timeout = std::optional<std::chrono::milliseconds>;

  /// Connects, trying until the join timeout; throws as StoreConnection.
  explicit Store(const StoreOptions& options);

  int rank() const;
  int world_size() const;

  void set(const std::string& key, std::string value);
  /// Waits until there is one.
  std::string get(const std::string& key, Timeout timeout = {}) const;
  /// Adds to a number, which is 0 where there is none yet, and returns the sum. The value is its
  /// decimal text.
  int64_t add(const std::string& key, int64_t amount);
  /// Whether all are there.
  bool check(std::span<const std::string> keys) const;
  /// Waits until all are there.
  void wait(std::span<const std::string> keys, Timeout timeout = {}) const;
  /// Sets the key to `desired` if its value is `expected`, in one step. Returns the value it has
  /// then. A key that is not there counts as an empty value.
  std::string compare_set(const std::string& key, std::string expected, std::string desired);
  /// Whether it was there.
  bool erase(const std::string& key);

  /// Waits until every rank of the job has connected.
  void join(Timeout timeout = {}) const;
  /// Waits until every rank has come to the barrier of that name, which may be used again then. A
  /// rank that gave up waiting has not come.
  void barrier(const std::string& name, Timeout timeout = {});

  /// For StoreControl.
  const std::shared_ptr<StoreConnection>& connection() const { return connection_; }

 private:
  std::string request(StoreMessage message) const;
  std::string request_and_wait(StoreMessage message, Timeout timeout) const;

  std::shared_ptr<StoreConnection> connection_;
};

}  // namespace lockstep::dist
