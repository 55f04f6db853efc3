#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dist/rendezvous/store.h"
#include "dist/rendezvous/store_server.h"

namespace lockstep::dist {

/// A store's server on 127.0.0.1, and the options with which ranks connect to it.
class StoreJob {
 public:
  explicit StoreJob(int size, const std::string& address = "127.0.0.1:0")
      : size_(size), server_(std::make_unique<StoreServer>(server_options(size, address))) {}

  static StoreServerOptions server_options(int size, const std::string& address = "127.0.0.1:0") {
    return {.address = address,
            .job = "job-a",
            .secret = "open sesame",
            .world_size = size,
            .rank = 0,
            .silence = std::chrono::seconds(1)};
  }
  static StoreOptions rank_options(int rank, int size, const std::string& address) {
    return {.address = address,
            .job = "job-a",
            .secret = "open sesame",
            .rank = rank,
            .world_size = size,
            .join_timeout = std::chrono::seconds(10),
            .timeout = std::chrono::seconds(10),
            .silence = std::chrono::seconds(1)};
  }

  int size() const { return size_; }
  StoreServer& server() { return *server_; }
  const std::string& address() const { return server_->address(); }
  StoreOptions options(int rank) const { return rank_options(rank, size_, address()); }
  Store rank(int rank) const { return Store(options(rank)); }
  void stop() { server_.reset(); }

  /// Runs `body(store)` in one thread per rank.
  void on_ranks(const std::function<void(Store&)>& body) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([this, rank, &body] {
        Store store = this->rank(rank);
        body(store);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int size_;
  std::unique_ptr<StoreServer> server_;
};

}  // namespace lockstep::dist
