#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Memory for a message that arrived before its receive was posted.
struct SpareBuffer {
  std::unique_ptr<std::byte[]> data;
  size_t capacity = 0;
};

/// A message in progress, on the sending or the receiving side of a channel.
struct Transfer {
  Transfer* next = nullptr;
  uint64_t id = 0;  ///< number given by the sender
  uint64_t tag = 0;
  uint64_t total = 0;  ///< bytes; of a posted receive, the size of its buffer
  uint64_t moved = 0;
  /// Source or destination. Null if arriving bytes go to `spare` or are discarded.
  std::byte* data = nullptr;
  Message* message = nullptr;  ///< null without a posted receive, or after cancellation
  SpareBuffer spare;
  bool announced = false;  ///< sent only after a grant
  bool early = false;      ///< no receive is posted yet
};

/// FIFO queue.
class TransferQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  Transfer* front() const noexcept { return first_; }
  void push(Transfer* transfer) noexcept {
    transfer->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = transfer;
    last_ = transfer;
  }
  /// Removes and returns the first transfer for which `chosen` is true, or null.
  template <class Predicate>
  Transfer* take(Predicate chosen) noexcept {
    Transfer* before = nullptr;
    for (Transfer* at = first_; at != nullptr; before = at, at = at->next) {
      if (!chosen(*at)) continue;
      (before == nullptr ? first_ : before->next) = at->next;
      if (last_ == at) last_ = before;
      return at;
    }
    return nullptr;
  }
  Transfer* pop() noexcept {
    return take([](const Transfer&) { return true; });
  }

 private:
  Transfer* first_ = nullptr;
  Transfer* last_ = nullptr;
};

/// Transfers by tag; those with the same tag stay in order.
class TransferTable {
 public:
  void push(Transfer* transfer) noexcept { queue_of(transfer->tag).push(transfer); }
  Transfer* take(uint64_t tag) noexcept {
    return queue_of(tag).take([tag](const Transfer& transfer) { return transfer.tag == tag; });
  }
  template <class Predicate>
  Transfer* take_if(Predicate chosen) noexcept {
    for (TransferQueue& queue : queues_) {
      if (Transfer* const transfer = queue.take(chosen)) return transfer;
    }
    return nullptr;
  }

 private:
  TransferQueue& queue_of(uint64_t tag) noexcept {
    return queues_[(tag * 0x9e3779b97f4a7c15U) >> 58];
  }

  std::array<TransferQueue, 64> queues_;
};

/// Recycles transfers and buffers, so that steady traffic does not allocate.
class TransferPool {
 public:
  /// Returns a default-initialised transfer.
  Transfer* make() {
    if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<Transfer>()).get());
    Transfer* const transfer = free_.back();
    free_.pop_back();
    return transfer;
  }
  void drop(Transfer* transfer) {
    drop(std::move(transfer->spare));
    *transfer = {};
    free_.push_back(transfer);
  }

  SpareBuffer make_buffer(size_t bytes);
  void drop(SpareBuffer buffer);

 private:
  /// Free buffers by log2 of their capacity.
  std::array<std::vector<SpareBuffer>, 64> buffers_;
  std::vector<std::unique_ptr<Transfer>> all_;
  std::vector<Transfer*> free_;
};

/// The messages of a channel from their posting to their end. Not thread-safe.
class ChannelMessages {
 public:
  /// Counts a message that is posted.
  void begin(Message& message) {
    message = {Message::State::kPending, 0, {}};
    ++pending_;
  }
  void end(Message& message, size_t bytes);
  void fail(Message& message, std::string error);
  /// For a message that was taken back: it is no longer counted.
  void forget(Message& message);
  /// Fails a transfer's message, if it has one, and gives the transfer back to `pool`.
  void fail_and_drop(TransferPool& pool, Transfer* transfer, const std::string& error);
  void fail_all(TransferPool& pool, TransferQueue& queue, const std::string& error);

  int pending() const noexcept { return pending_; }
  /// Whether a message has ended since the last `take_ended`.
  bool has_ended() const noexcept { return ended_; }
  bool take_ended() noexcept { return std::exchange(ended_, false); }
  /// Bytes of the messages that have ended well since the last call.
  size_t take_ended_bytes() noexcept { return std::exchange(ended_bytes_, 0); }

 private:
  int pending_ = 0;
  bool ended_ = false;
  size_t ended_bytes_ = 0;
};

}  // namespace lockstep::dist
