#pragma once

#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "dist/rendezvous/connection.h"

namespace lockstep::dist {

/// A connection of the store's server.
struct StoreClient {
  using Clock = std::chrono::steady_clock;

  Connection connection;
  std::string from;  ///< "10.0.0.2:4711"
  Clock::time_point came = Clock::now();
  Clock::time_point give_up;  ///< when a connection that is not a rank is closed
  int rank = -1;              ///< rank once admitted
  bool refused = false;       ///< was refused, or has left: further messages are ignored
  bool to_remove = false;

  /// Whether it has not identified itself yet.
  bool is_stranger() const { return rank < 0 && !refused; }
};

/// All connections of the server, and which of them belongs to which rank. Not thread-safe.
class StoreClients {
 public:
  explicit StoreClients(int ranks) : seats_(static_cast<size_t>(ranks)) {}

  /// Lists the clients in order of arrival. Addresses are stable until a client is removed.
  std::list<StoreClient>& all() { return clients_; }
  StoreClient& add(Descriptor socket, std::string from, std::chrono::seconds time_for_hello);
  void remove_gone();
  size_t strangers() const;
  /// Removes a connection that is not a rank although it had time to become one. Returns false if
  /// there is none.
  bool remove_old_stranger(StoreClient::Clock::time_point now);

  /// Makes the client the connection of `rank`, and sends it the messages kept for that rank.
  void bind_rank(StoreClient& client, int rank);
  /// Undoes `bind_rank`.
  void unbind_rank(StoreClient& client);
  /// Sends to the rank; does nothing if it is not connected.
  void send(int rank, const StoreMessage& message);
  void send_to_all_ranks(const StoreMessage& message);
  /// Sends to the rank; with `hold`, keeps the message for a rank that has not connected yet.
  /// Dropped if more than 1 MiB waits for the rank already.
  void post(int rank, StoreMessage message, bool hold);

 private:
  /// Connection of a rank, or messages kept for it.
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
