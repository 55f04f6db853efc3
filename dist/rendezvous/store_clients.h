#pragma once

#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "dist/rendezvous/connection.h"

namespace lockstep::dist {

/// One connection that the store's server has.
struct StoreClient {
  using Clock = std::chrono::steady_clock;

  Connection connection;
  std::string from;  ///< "10.0.0.2:4711"
  Clock::time_point came = Clock::now();
  Clock::time_point give_up;  ///< of one that is no rank
  int rank = -1;              ///< once let in
  bool refused = false;       ///< has been told why, and is expected to go
  bool gone = false;

  /// Whether it has not said yet who it is.
  bool is_stranger() const { return rank < 0 && !refused; }
};

/// All of them, and which is whose. Not thread-safe.
class StoreClients {
 public:
  explicit StoreClients(int ranks) : seats_(static_cast<size_t>(ranks)) {}

  /// In the order they came. They stay where they are until they are removed.
  std::list<StoreClient>& all() { return clients_; }
  StoreClient& add(Descriptor socket, std::string from, std::chrono::seconds time_for_hello);
  void remove_gone();
  size_t strangers() const;
  /// Removes one that is no rank and had time enough to become one; false where there is none.
  bool remove_old_stranger(StoreClient::Clock::time_point now);

  /// From now on the client is that rank, and gets what was posted to it before.
  void seat(StoreClient& client, int rank);
  /// It is no longer.
  void unseat(StoreClient& client);
  /// To the rank; nowhere where that is not here.
  void send(int rank, const StoreMessage& message);
  void send_to_all_ranks(const StoreMessage& message);
  /// As `send`, but `hold` keeps it for a rank that is still to come. Dropped where more than 1 MiB
  /// waits for the rank already.
  void post(int rank, StoreMessage message, bool hold);

 private:
  /// Of a rank.
  struct Seat {
    StoreClient* client = nullptr;
    std::vector<StoreMessage> held;
    size_t held_bytes = 0;
  };
  Seat& seat_of(int rank) { return seats_[static_cast<size_t>(rank)]; }

  std::list<StoreClient> clients_;
  std::vector<Seat> seats_;
};

}  // namespace lockstep::dist
