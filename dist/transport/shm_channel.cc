#include "dist/transport/shm_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {

enum class ShmChannel::Kind : uint32_t {
  kMessage,   ///< first part of an eager message
  kRest,      ///< further part, or any part of a granted message
  kAnnounce,  ///< announces a message that waits for a grant
  kGrant,     ///< allows an announced message to be sent
  kAbandon,   ///< a message will not be sent, or not completed
};

/// Header of `bytes` bytes of payload in the ring.
struct ShmChannel::Record {
  Kind kind = Kind::kMessage;
  uint32_t bytes = 0;
  uint64_t id = 0;
  uint64_t tag = 0;    ///< of kMessage and kAnnounce
  uint64_t total = 0;  ///< size of the message, of kMessage and kAnnounce
};

namespace {

/// Alignment of records, so that no header wraps around the ring's end.
constexpr size_t kUnit = 32;
/// Largest piece copied at once: small enough to stay in the core's cache until it is read.
constexpr size_t kChunk = 16 << 10;
/// Smallest piece of a message, except for the last one.
constexpr size_t kLeastChunk = 4 << 10;
/// Bytes moved by one call in each direction, so that large messages do not delay other peers.
constexpr size_t kBurst = 256 << 10;

constexpr size_t whole_units(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

}  // namespace

ShmChannel::ShmChannel(End out, End in, size_t ring_bytes, std::function<void()> make_ring,
                       std::function<void()> ring_peer)
    : out_(out.link->positions, out.data, ring_bytes),
      in_(in.link->positions, in.data, ring_bytes),
      out_link_(*out.link),
      in_link_(*in.link),
      make_ring_(std::move(make_ring)),
      ring_peer_(std::move(ring_peer)) {
  static_assert(sizeof(Record) == kUnit);
  LS_ASSERT(ring_bytes >= 2 * (kUnit + kLeastChunk));
}

// --- what is posted ------------------------------------------------------------------------------

void ShmChannel::send(uint64_t tag, const void* data, size_t bytes, Message& message) {
  messages_.begin(message);
  if (is_closed()) return messages_.fail(message, error_);
  Transfer* const transfer = pool_.make();
  transfer->id = next_id_++;
  transfer->tag = tag;
  transfer->total = bytes;
  transfer->data = static_cast<std::byte*>(const_cast<void*>(data));
  transfer->message = &message;
  const bool first = waiting_.empty() && sending_ == nullptr;
  waiting_.push(transfer);
  if (first) push();
}

void ShmChannel::receive(uint64_t tag, void* data, size_t bytes, Message& message) {
  messages_.begin(message);
  if (Transfer* const early = early_.take(tag)) {
    place(early, data, bytes, message);
    return push();
  }
  if (is_closed()) return messages_.fail(message, error_);
  Transfer* const transfer = pool_.make();
  transfer->tag = tag;
  transfer->total = bytes;
  transfer->data = static_cast<std::byte*>(data);
  transfer->message = &message;
  posted_.push(transfer);
}

bool ShmChannel::cancel(Message& message) {
  const auto is_it = [&](const Transfer& transfer) { return transfer.message == &message; };
  const auto give_up_sending = [&](Transfer* transfer, bool known_to_peer) {
    if (known_to_peer) order(Kind::kAbandon, transfer->id);
    pool_.drop(transfer);
  };
  const auto disregard = [](Transfer* transfer) {
    transfer->data = nullptr;
    transfer->message = nullptr;
  };
  if (Transfer* const posted = posted_.take_if(is_it)) {
    pool_.drop(posted);
  } else if (Transfer* const waiting = waiting_.take(is_it)) {
    give_up_sending(waiting, false);
  } else if (Transfer* const announced = announced_.take(is_it)) {
    give_up_sending(announced, true);
  } else if (Transfer* const granted = granted_.take(is_it)) {
    give_up_sending(granted, true);
  } else if (sending_ != nullptr && is_it(*sending_)) {
    const bool begun = sending_->moved > 0 || sending_->announced;
    if (!begun) eager_bytes_ -= sending_->total;
    give_up_sending(std::exchange(sending_, nullptr), begun);
  } else if (receiving_ != nullptr && is_it(*receiving_)) {
    disregard(receiving_);
  } else if (Transfer* const arriving = arriving_.take(is_it)) {
    disregard(arriving);
    arriving_.push(arriving);
  } else {
    return false;
  }
  messages_.forget(message);
  return true;
}

bool ShmChannel::progress() {
  if (!is_closed()) {
    pull();
    push();
  }
  return messages_.take_ended();
}

void ShmChannel::close(const std::string& error) {
  if (is_closed()) return;
  while (in_.available() > 0) pull();
  error_ = error;
  messages_.fail_all(pool_, waiting_, error);
  messages_.fail_all(pool_, announced_, error);
  messages_.fail_all(pool_, granted_, error);
  messages_.fail_all(pool_, arriving_, error);
  messages_.fail_all(pool_, control_, error);
  if (sending_ != nullptr) messages_.fail_and_drop(pool_, std::exchange(sending_, nullptr), error);
  if (receiving_ != nullptr && !receiving_->early)
    messages_.fail_and_drop(pool_, receiving_, error);
  receiving_ = nullptr;
  const auto any = [](const Transfer&) { return true; };
  while (Transfer* const transfer = posted_.take_if(any))
    messages_.fail_and_drop(pool_, transfer, error);
  const auto incomplete = [](const Transfer& transfer) { return transfer.moved < transfer.total; };
  while (Transfer* const transfer = early_.take_if(incomplete)) pool_.drop(transfer);
  needs_ = 0;
}

bool ShmChannel::is_ready() noexcept {
  if (is_closed()) return messages_.has_ended();
  if (messages_.has_ended() || in_.available() > 0) return true;
  if (needs_ > 0) return out_.room(needs_) >= needs_;
  return !control_.empty() || sending_ != nullptr || !granted_.empty() || !waiting_.empty();
}

void ShmChannel::before_sleep() noexcept {
  // Ask for at least half of the ring: otherwise every record that is read would wake the writer.
  if (needs_ > 0) out_.want(std::max(needs_, out_.capacity() / 2));
}

void ShmChannel::after_sleep() noexcept {
  if (needs_ > 0) out_.stop_wanting();
}

// --- the sending side ----------------------------------------------------------------------------

/// Whether there is something to send, and a ring for it.
bool ShmChannel::has_ring() {
  if (make_ring_ == nullptr) return true;
  if (control_.empty() && waiting_.empty()) return false;
  try {
    std::exchange(make_ring_, nullptr)();
    return true;
  } catch (const OutOfMemoryError& error) {
    close(error.what());
    return false;
  }
}

void ShmChannel::push() {
  if (is_closed() || !has_ring()) return;
  needs_ = 0;
  for (size_t chunks = 0; chunks < kBurst / kChunk; ++chunks) {
    while (Transfer* const next = control_.front()) {
      if (!has_room(kUnit)) return publish();
      write({static_cast<Kind>(next->tag), 0, next->id, 0, 0}, nullptr);
      pool_.drop(control_.pop());
    }
    if (sending_ == nullptr && !begin_next()) break;
    if (!push_chunk()) break;
  }
  publish();
}

/// Selects the next message to send and announces those over the eager limit. Returns false if
/// there is none, or no room for an announcement.
bool ShmChannel::begin_next() {
  sending_ = granted_.pop();
  while (sending_ == nullptr) {
    Transfer* const next = waiting_.front();
    if (next == nullptr) return false;
    const uint64_t early = eager_bytes_ - out_link_.placed.load(std::memory_order_acquire);
    if (early + next->total <= 2 * out_.capacity()) {
      eager_bytes_ += next->total;
      sending_ = waiting_.pop();
    } else {
      if (!has_room(kUnit)) return false;
      write({Kind::kAnnounce, 0, next->id, next->tag, next->total}, nullptr);
      next->announced = true;
      announced_.push(waiting_.pop());
    }
  }
  return true;
}

bool ShmChannel::push_chunk() {
  Transfer& transfer = *sending_;
  const size_t left = transfer.total - transfer.moved;
  if (!has_room(kUnit + whole_units(std::min(left, kLeastChunk)))) return false;
  const size_t wanted = std::min(left, kChunk);
  const size_t bytes = std::min(wanted, out_.room(kUnit + whole_units(wanted)) - kUnit);
  const bool begins = transfer.moved == 0 && !transfer.announced;
  write({begins ? Kind::kMessage : Kind::kRest, static_cast<uint32_t>(bytes), transfer.id,
         transfer.tag, transfer.total},
        transfer.data + transfer.moved);
  transfer.moved += bytes;
  if (bytes >= kLeastChunk) publish();
  if (transfer.moved == transfer.total) {
    messages_.end(*transfer.message, transfer.total);
    pool_.drop(std::exchange(sending_, nullptr));
  }
  return true;
}

bool ShmChannel::has_room(size_t bytes) noexcept {
  const bool has = out_.room(bytes) >= bytes;
  needs_ = has ? 0 : bytes;
  return has;
}

void ShmChannel::write(const Record& record, const void* data) noexcept {
  out_.write(&record, sizeof(record));
  out_.write(data, record.bytes);
  out_.align(kUnit);
}

void ShmChannel::publish() noexcept {
  if (out_.publish()) ring_peer_();
}

void ShmChannel::order(Kind kind, uint64_t id) {
  Transfer* const transfer = pool_.make();
  transfer->tag = static_cast<uint64_t>(kind);
  transfer->id = id;
  control_.push(transfer);
}

void ShmChannel::take_grant(uint64_t id) {
  Transfer* const transfer =
      announced_.take([id](const Transfer& announced) { return announced.id == id; });
  if (transfer != nullptr) granted_.push(transfer);  // null if cancelled meanwhile
}

// --- the receiving side --------------------------------------------------------------------------

void ShmChannel::pull() {
  size_t bytes = 0;
  while (bytes < kBurst && in_.available(sizeof(Record)) >= sizeof(Record)) {
    Record record;
    in_.read(&record, sizeof(record));
    take(record);
    in_.align(kUnit);
    bytes += sizeof(record) + record.bytes;
    if (in_.release()) ring_peer_();
  }
}

void ShmChannel::take(const Record& record) {
  switch (record.kind) {
    case Kind::kMessage:
    case Kind::kAnnounce:
      return take_message(record);
    case Kind::kRest:
      if (receiving_ == nullptr) {
        receiving_ = arriving_.take([&](const Transfer& other) { return other.id == record.id; });
      }
      return take_chunk(record);
    case Kind::kGrant:
      return take_grant(record.id);
    case Kind::kAbandon:
      return take_abandoned(record.id);
  }
}

void ShmChannel::take_message(const Record& record) {
  Transfer* const transfer = pool_.make();
  transfer->id = record.id;
  transfer->tag = record.tag;
  transfer->total = record.total;
  transfer->announced = record.kind == Kind::kAnnounce;
  if (!transfer->announced) receiving_ = transfer;
  if (Transfer* const posted = posted_.take(record.tag)) {
    place(transfer, posted->data, posted->total, *posted->message);
    pool_.drop(posted);
  } else {
    transfer->early = true;
    if (!transfer->announced) transfer->spare = pool_.make_buffer(transfer->total);
    early_.push(transfer);
  }
  if (record.kind == Kind::kMessage) take_chunk(record);
}

void ShmChannel::take_chunk(const Record& record) {
  LS_ASSERT(receiving_ != nullptr && receiving_->id == record.id &&
            receiving_->moved + record.bytes <= receiving_->total);
  Transfer& transfer = *receiving_;
  std::byte* const place = transfer.early ? transfer.spare.data.get() : transfer.data;
  if (place != nullptr) {
    in_.read(place + transfer.moved, record.bytes);
  } else {
    in_.skip(record.bytes);
  }
  transfer.moved += record.bytes;
  if (transfer.moved < transfer.total) return;
  receiving_ = nullptr;
  if (!transfer.early) arrived(&transfer);
}

void ShmChannel::take_abandoned(uint64_t id) {
  const auto is_it = [id](const Transfer& transfer) { return transfer.id == id; };
  Transfer* transfer = nullptr;
  if (receiving_ != nullptr && receiving_->id == id) {
    transfer = std::exchange(receiving_, nullptr);
    if (transfer->early) (void)early_.take_if(is_it);
  } else {
    transfer = arriving_.take(is_it);
    if (transfer == nullptr) transfer = early_.take_if(is_it);
  }
  LS_ASSERT(transfer != nullptr);
  if (transfer->early && !transfer->announced) count_placed(transfer->total);
  messages_.fail_and_drop(pool_, transfer, "its sender has given it up");
}

/// Matches a message that was sent, or announced, with a receive.
void ShmChannel::place(Transfer* transfer, void* data, size_t room, Message& message) {
  transfer->early = false;
  if (!transfer->announced) count_placed(transfer->total);
  if (transfer->total > room) {
    message.bytes = transfer->total;
    messages_.fail(message,
                   fmt::format("{} bytes were sent where {} were expected", transfer->total, room));
  } else {
    transfer->data = static_cast<std::byte*>(data);
    transfer->message = &message;
    if (transfer->moved > 0) std::memcpy(data, transfer->spare.data.get(), transfer->moved);
  }
  pool_.drop(std::move(transfer->spare));
  if (transfer->announced) {
    order(Kind::kGrant, transfer->id);
    arriving_.push(transfer);
  } else if (transfer != receiving_) {
    arrived(transfer);
  }
}

void ShmChannel::arrived(Transfer* transfer) {
  if (transfer->message != nullptr) messages_.end(*transfer->message, transfer->total);
  pool_.drop(transfer);
}

void ShmChannel::count_placed(uint64_t bytes) noexcept {
  placed_ += bytes;
  in_link_.placed.store(placed_, std::memory_order_release);
}

}  // namespace lockstep::dist
