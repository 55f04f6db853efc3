#include "dist/rendezvous/store_clients.h"

#include <algorithm>
#include <utility>

#include "dist/rendezvous/store_limits.h"

namespace lockstep::dist {

namespace {
constexpr auto kTimeToBecomeARank = std::chrono::milliseconds(250);
}  // namespace

StoreClient& StoreClients::add(Descriptor socket, std::string from,
                               std::chrono::seconds time_for_hello) {
  clients_.push_back({Connection(std::move(socket), kLargestHello), std::move(from)});
  clients_.back().give_up = clients_.back().came + time_for_hello;
  return clients_.back();
}

void StoreClients::remove_gone() {
  clients_.remove_if([](const StoreClient& client) { return client.to_remove; });
}

size_t StoreClients::strangers() const {
  return static_cast<size_t>(std::ranges::count_if(clients_, &StoreClient::is_stranger));
}

bool StoreClients::remove_old_stranger(StoreClient::Clock::time_point now) {
  const auto old = std::ranges::find_if(clients_, [&](const StoreClient& one) {
    return one.rank < 0 && (one.refused || now - one.came >= kTimeToBecomeARank);
  });
  if (old == clients_.end()) return false;
  clients_.erase(old);
  return true;
}

void StoreClients::bind_rank(StoreClient& client, int rank) {
  client.rank = rank;
  client.connection.set_largest_message(kLargestStoreMessage);
  Seat& seat = seat_of(rank);
  seat.client = &client;
  for (const StoreMessage& message : seat.held) client.connection.send(message);
  seat.held = {};
  seat.held_bytes = 0;
}

void StoreClients::unbind_rank(StoreClient& client) {
  seat_of(std::exchange(client.rank, -1)).client = nullptr;
}

void StoreClients::send(int rank, const StoreMessage& message) {
  if (StoreClient* client = seat_of(rank).client) client->connection.send(message);
}

void StoreClients::send_to_all_ranks(const StoreMessage& message) {
  for (const Seat& seat : seats_) {
    if (seat.client != nullptr) seat.client->connection.send(message);
  }
}

void StoreClients::post(int rank, StoreMessage message, bool hold) {
  Seat& seat = seat_of(rank);
  if (seat.client != nullptr) {
    if (seat.client->connection.unsent_bytes() <= kHeldBytes) seat.client->connection.send(message);
  } else if (hold && seat.held_bytes <= kHeldBytes) {
    for (const std::string& text : message.texts) seat.held_bytes += text.size() + 1;
    seat.held.push_back(std::move(message));
  }
}

}  // namespace lockstep::dist
