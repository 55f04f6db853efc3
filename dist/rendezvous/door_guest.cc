#include "dist/rendezvous/door_guest.h"

namespace lockstep::dist {

namespace {

/// Bytes that wait in a connection: what comes behind what is given is not far behind.
constexpr size_t kMostUnsent = size_t{1} << 20;
/// Messages to one guest before the others have their turn.
constexpr int kMessagesAtOnce = 32;

}  // namespace

void DoorGuest::give(std::shared_ptr<const StoreMessage> part, size_t bytes) {
  untaken_.emplace_back(part->id, bytes);
  untaken_bytes_ += bytes;
  waiting_.push_back(std::move(part));
}

void DoorGuest::end_taking() {
  takes = false;
  waiting_.clear();
  untaken_.clear();
  untaken_bytes_ = 0;
}

void DoorGuest::has_taken(uint64_t id, Clock::time_point now) {
  answered = now;
  if (is_called) give_up = now + kTimeToSay;
  while (!untaken_.empty() && untaken_.front().first <= id) {
    untaken_bytes_ -= untaken_.front().second;
    untaken_.pop_front();
  }
}

void DoorGuest::call(StoreMessage message, Clock::time_point now) {
  waiting_.push_back(std::make_shared<const StoreMessage>(std::move(message)));
  is_called = true;
  standing = Standing::kLeaving;
  give_up = now + kTimeToSay;
  send_more();
}

bool DoorGuest::has_more() const {
  return !waiting_.empty() && connection.unsent_bytes() < kMostUnsent;
}

void DoorGuest::send_more() {
  for (int i = 0; i < kMessagesAtOnce && has_more(); ++i) {
    connection.send(*waiting_.front());
    waiting_.pop_front();
    if (waiting_.empty() && is_called) connection.end_sending();
  }
}

void DoorGuest::send_rest() {
  if (!is_called) return end_taking();
  for (; !waiting_.empty(); waiting_.pop_front()) connection.send(*waiting_.front());
}

}  // namespace lockstep::dist
