#include "dist/transport/tcp_channel.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {

enum class TcpChannel::Kind : uint32_t {
  kMessage = 1,  ///< an eager message; its bytes follow
  kAnnounce,     ///< announces a message that waits for a grant
  kGrant,        ///< allows an announced message to be sent
  kGranted,      ///< a granted message; its bytes follow
  kAbandon,      ///< an announced message will not be sent
  kPlaced,       ///< for its `placed` alone
};

/// Precedes each message on the wire, in the byte order of the host: all ranks run the same build.
struct TcpChannel::Header {
  Kind kind = Kind::kPlaced;
  uint32_t unused = 0;
  uint64_t id = 0;
  uint64_t tag = 0;
  uint64_t total = 0;   ///< size of the message
  uint64_t placed = 0;  ///< the sender's `placed_`
};

struct TcpChannel::Outgoing {
  Header header;
  Transfer* transfer = nullptr;  ///< has the payload; null if there is none
  size_t sent = 0;               ///< bytes of header and payload
};

namespace {

/// Headers, each with its message, that one system call sends. With segments of 128 KiB this is
/// more than a socket's buffer takes.
constexpr size_t kBatch = 32;
/// Read together with the rest of a message: the next headers, and small messages.
constexpr size_t kStaged = 4 << 10;
/// Bytes read by one call of `pull`, so that one fast peer does not delay the others.
constexpr size_t kPullBytes = size_t{1} << 20;

}  // namespace

TcpChannel::TcpChannel(Descriptor socket)
    : socket_(std::move(socket)),
      out_(std::make_unique<Outgoing[]>(kBatch)),
      staged_(std::make_unique<std::byte[]>(kStaged)) {
  static_assert(sizeof(Header) == 40);
}

TcpChannel::~TcpChannel() = default;

// --- what is posted ------------------------------------------------------------------------------

void TcpChannel::send(uint64_t tag, const void* data, size_t bytes, Message& message) {
  messages_.begin(message);
  if (is_closed()) return messages_.fail(message, error_);
  Transfer* const transfer = pool_.make();
  transfer->id = next_id_++;
  transfer->tag = tag;
  transfer->total = bytes;
  transfer->data = static_cast<std::byte*>(const_cast<void*>(data));
  transfer->message = &message;
  waiting_.push(transfer);
}

void TcpChannel::receive(uint64_t tag, void* data, size_t bytes, Message& message) {
  messages_.begin(message);
  if (Transfer* const early = early_.take(tag)) return place(early, data, bytes, message);
  if (is_closed()) return messages_.fail(message, error_);
  Transfer* const transfer = pool_.make();
  transfer->tag = tag;
  transfer->total = bytes;
  transfer->data = static_cast<std::byte*>(data);
  transfer->message = &message;
  posted_.push(transfer);
}

bool TcpChannel::cancel(Message& message) {
  const auto is_it = [&](const Transfer& transfer) { return transfer.message == &message; };
  const auto disregard = [](Transfer* transfer) {
    transfer->data = nullptr;
    transfer->message = nullptr;
  };
  const auto sending = [&]() -> Outgoing* {
    for (size_t i = 0; i < out_count_; ++i) {
      Outgoing& one = out_[(out_first_ + i) % kBatch];
      if (one.transfer != nullptr && is_it(*one.transfer)) return &one;
    }
    return nullptr;
  };
  if (Transfer* const posted = posted_.take_if(is_it)) {
    pool_.drop(posted);
  } else if (Transfer* const waiting = waiting_.take(is_it)) {
    pool_.drop(waiting);
  } else if (Transfer* const announced = announced_.take(is_it)) {
    order(Kind::kAbandon, announced->id);
    pool_.drop(announced);
  } else if (Transfer* const granted = granted_.take(is_it)) {
    order(Kind::kAbandon, granted->id);
    pool_.drop(granted);
  } else if (Outgoing* const one = sending()) {
    // The peer expects all bytes that the header promised.
    Transfer& transfer = *one->transfer;
    transfer.spare = pool_.make_buffer(transfer.total);
    std::memcpy(transfer.spare.data.get(), transfer.data, transfer.total);
    transfer.data = transfer.spare.data.get();
    transfer.message = nullptr;
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

void TcpChannel::close(const std::string& error) {
  if (is_closed()) return;
  error_ = error;
  for (; out_count_ > 0; --out_count_, out_first_ = (out_first_ + 1) % kBatch) {
    Transfer* const transfer = std::exchange(out_[out_first_].transfer, nullptr);
    if (transfer != nullptr) messages_.fail_and_drop(pool_, transfer, error);
  }
  messages_.fail_all(pool_, waiting_, error);
  messages_.fail_all(pool_, announced_, error);
  messages_.fail_all(pool_, granted_, error);
  messages_.fail_all(pool_, arriving_, error);
  messages_.fail_all(pool_, control_, error);
  if (receiving_ != nullptr && !receiving_->early)
    messages_.fail_and_drop(pool_, receiving_, error);
  receiving_ = nullptr;
  const auto any = [](const Transfer&) { return true; };
  while (Transfer* const transfer = posted_.take_if(any))
    messages_.fail_and_drop(pool_, transfer, error);
  const auto incomplete = [](const Transfer& transfer) { return transfer.moved < transfer.total; };
  while (Transfer* const transfer = early_.take_if(incomplete)) pool_.drop(transfer);
  blocked_ = false;
  socket_.reset();
}

size_t TcpChannel::take_ended(bool& ended) noexcept {
  ended |= messages_.take_ended();
  return messages_.take_ended_bytes();
}

// --- the sending side ----------------------------------------------------------------------------

bool TcpChannel::has_unsent() const noexcept {
  if (is_closed() || broken_) return false;
  return out_count_ > 0 || !control_.empty() || !granted_.empty() || !waiting_.empty() ||
         placed_ - placed_told_ >= kEagerBytes / 4;
}

void TcpChannel::enqueue(Kind kind, uint64_t id, Transfer* transfer) {
  Outgoing& one = out_[(out_first_ + out_count_++) % kBatch];
  const bool has_payload = kind == Kind::kMessage || kind == Kind::kGranted;
  one.header = {kind,
                0,
                id,
                transfer == nullptr ? 0 : transfer->tag,
                transfer == nullptr ? 0 : transfer->total,
                placed_};
  one.transfer = has_payload ? transfer : nullptr;
  one.sent = 0;
  placed_told_ = placed_;
}

/// Puts headers, in the order in which they are to be sent, into the ring.
void TcpChannel::fill() {
  while (out_count_ < kBatch) {
    if (Transfer* const next = control_.pop()) {
      enqueue(static_cast<Kind>(next->tag), next->id, nullptr);
      pool_.drop(next);
    } else if (Transfer* const granted = granted_.pop()) {
      enqueue(Kind::kGranted, granted->id, granted);
    } else if (!begin_next()) {
      break;
    }
  }
  if (out_count_ < kBatch && placed_ - placed_told_ >= kEagerBytes / 4) {
    enqueue(Kind::kPlaced, 0, nullptr);
  }
}

/// Sends the next message, or announces it if it is beyond the eager limit.
bool TcpChannel::begin_next() {
  Transfer* const next = waiting_.pop();
  if (next == nullptr) return false;
  if (eager_bytes_ - placed_there_ + next->total <= kEagerBytes) {
    eager_bytes_ += next->total;
    enqueue(Kind::kMessage, next->id, next);
  } else {
    enqueue(Kind::kAnnounce, next->id, next);
    next->announced = true;
    announced_.push(next);
  }
  return true;
}

void TcpChannel::push() {
  if (is_closed() || broken_) return;
  blocked_ = false;
  while (true) {
    fill();
    if (out_count_ == 0) return;
    std::array<iovec, 2 * kBatch> parts;
    size_t count = 0;
    size_t wanted = 0;
    for (size_t i = 0; i < out_count_; ++i) {
      Outgoing& one = out_[(out_first_ + i) % kBatch];
      if (one.sent < sizeof(Header)) {
        parts[count++] = {reinterpret_cast<std::byte*>(&one.header) + one.sent,
                          sizeof(Header) - one.sent};
        wanted += sizeof(Header) - one.sent;
      }
      if (one.transfer == nullptr || one.transfer->total == 0) continue;
      const size_t done = one.sent - std::min(one.sent, sizeof(Header));
      parts[count++] = {one.transfer->data + done, one.transfer->total - done};
      wanted += one.transfer->total - done;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t got = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM) {
        blocked_ = true;
      } else {
        broken_ = true;  // `pull` finds the end of the connection after what has arrived
      }
      return;
    }
    sent(static_cast<size_t>(got));
    if (static_cast<size_t>(got) < wanted) {
      blocked_ = true;
      return;
    }
  }
}

/// Ends the messages whose last bytes are among the `bytes` that the system has accepted.
void TcpChannel::sent(size_t bytes) {
  while (out_count_ > 0) {
    Outgoing& one = out_[out_first_];
    const size_t whole = sizeof(Header) + (one.transfer == nullptr ? 0 : one.transfer->total);
    const size_t moved = std::min(bytes, whole - one.sent);
    one.sent += moved;
    bytes -= moved;
    if (one.sent < whole) return;
    if (Transfer* const transfer = std::exchange(one.transfer, nullptr)) {
      if (transfer->message != nullptr) messages_.end(*transfer->message, transfer->total);
      pool_.drop(transfer);
    }
    out_first_ = (out_first_ + 1) % kBatch;
    --out_count_;
  }
}

void TcpChannel::order(Kind kind, uint64_t id) {
  Transfer* const transfer = pool_.make();
  transfer->tag = static_cast<uint64_t>(kind);
  transfer->id = id;
  control_.push(transfer);
}

void TcpChannel::take_grant(uint64_t id) {
  Transfer* const transfer =
      announced_.take([id](const Transfer& announced) { return announced.id == id; });
  if (transfer != nullptr) granted_.push(transfer);  // null if cancelled meanwhile
}

// --- the receiving side --------------------------------------------------------------------------

bool TcpChannel::pull() {
  for (size_t read = 0; read < kPullBytes;) {
    if (is_closed() || !end_of_peer_.empty()) return false;
    std::array<iovec, 2> parts;
    size_t count = 0;
    size_t wanted = 0;
    if (receiving_ != nullptr) {
      Transfer& transfer = *receiving_;
      size_t left = transfer.total - transfer.moved;
      std::byte* place = transfer.early ? transfer.spare.data.get() : transfer.data;
      if (place != nullptr) {
        place += transfer.moved;
      } else {
        constexpr size_t kWaste = size_t{64} << 10;
        if (waste_ == nullptr) waste_ = std::make_unique_for_overwrite<std::byte[]>(kWaste);
        place = waste_.get();
        left = std::min(left, kWaste);
      }
      parts[count++] = {place, left};
      wanted += left;
    }
    const size_t direct = wanted;
    const bool completes = receiving_ == nullptr || direct == receiving_->total - receiving_->moved;
    if (completes) {
      // Between messages less than a header is left in the buffer, at its beginning.
      parts[count++] = {staged_.get() + staged_end_, kStaged - staged_end_};
      wanted += kStaged - staged_end_;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (broken_) end_of_peer_ = "has closed its connection";
        return false;
      }
      end_of_peer_ = fmt::format("is lost: the connection to it broke ({})", std::strerror(errno));
      return false;
    }
    if (got == 0) {
      end_of_peer_ = "has closed its connection";
      return false;
    }
    const auto bytes = static_cast<size_t>(got);
    read += bytes;
    payload_moved(std::min(bytes, direct));
    staged_end_ += bytes - std::min(bytes, direct);
    take_staged();
    if (bytes < wanted) return false;
  }
  return true;
}

void TcpChannel::payload_moved(size_t bytes) {
  if (receiving_ == nullptr || bytes == 0) return;
  Transfer* const transfer = receiving_;
  transfer->moved += bytes;
  if (transfer->moved < transfer->total) return;
  receiving_ = nullptr;
  if (!transfer->early) arrived(transfer);
}

/// Takes headers and the beginnings of messages out of the buffer.
void TcpChannel::take_staged() {
  while (!is_closed()) {
    const size_t there = staged_end_ - staged_first_;
    if (receiving_ != nullptr) {
      Transfer& transfer = *receiving_;
      const size_t bytes = std::min(there, static_cast<size_t>(transfer.total - transfer.moved));
      if (bytes == 0) break;
      std::byte* const place = transfer.early ? transfer.spare.data.get() : transfer.data;
      if (place != nullptr) {
        std::memcpy(place + transfer.moved, staged_.get() + staged_first_, bytes);
      }
      staged_first_ += bytes;
      payload_moved(bytes);
    } else if (there >= sizeof(Header)) {
      Header header;
      std::memcpy(&header, staged_.get() + staged_first_, sizeof(header));
      staged_first_ += sizeof(header);
      take(header);
    } else {
      break;
    }
  }
  if (staged_first_ > 0) {
    const size_t there = staged_end_ - staged_first_;
    std::memmove(staged_.get(), staged_.get() + staged_first_, there);
    staged_first_ = 0;
    staged_end_ = there;
  }
}

void TcpChannel::take(const Header& header) {
  placed_there_ = header.placed;
  switch (header.kind) {
    case Kind::kMessage:
    case Kind::kAnnounce:
      return take_message(header);
    case Kind::kGrant:
      return take_grant(header.id);
    case Kind::kGranted: {
      Transfer* const transfer =
          arriving_.take([&](const Transfer& other) { return other.id == header.id; });
      if (transfer != nullptr) return begin_payload(transfer);
      break;
    }
    case Kind::kAbandon:
      return take_abandoned(header.id);
    case Kind::kPlaced:
      return;
  }
  end_of_peer_ = "is lost: it sent what is no message of a rank";
}

void TcpChannel::take_message(const Header& header) {
  Transfer* const transfer = pool_.make();
  transfer->id = header.id;
  transfer->tag = header.tag;
  transfer->total = header.total;
  transfer->announced = header.kind == Kind::kAnnounce;
  if (!transfer->announced) receiving_ = transfer;
  if (Transfer* const posted = posted_.take(header.tag)) {
    place(transfer, posted->data, posted->total, *posted->message);
    pool_.drop(posted);
  } else {
    transfer->early = true;
    if (!transfer->announced) transfer->spare = pool_.make_buffer(transfer->total);
    early_.push(transfer);
  }
  if (!transfer->announced) begin_payload(receiving_);
}

void TcpChannel::begin_payload(Transfer* transfer) {
  receiving_ = transfer;
  if (transfer->total > 0) return;
  receiving_ = nullptr;
  if (!transfer->early) arrived(transfer);
}

void TcpChannel::take_abandoned(uint64_t id) {
  const auto is_it = [id](const Transfer& transfer) { return transfer.id == id; };
  Transfer* transfer = arriving_.take(is_it);
  if (transfer == nullptr) transfer = early_.take_if(is_it);
  if (transfer != nullptr) messages_.fail_and_drop(pool_, transfer, "its sender has given it up");
}

/// Matches a message that was sent, or announced, with a receive.
void TcpChannel::place(Transfer* transfer, void* data, size_t room, Message& message) {
  transfer->early = false;
  if (!transfer->announced) placed_ += transfer->total;
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
  transfer->spare = {};
  if (transfer->announced) {
    order(Kind::kGrant, transfer->id);
    arriving_.push(transfer);
  } else if (transfer != receiving_) {
    arrived(transfer);
  }
}

void TcpChannel::arrived(Transfer* transfer) {
  if (transfer->message != nullptr) messages_.end(*transfer->message, transfer->total);
  pool_.drop(transfer);
}

}  // namespace lockstep::dist
