#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Simulated ranks, each with a full-duplex link of 1 byte per nanosecond to one switch. The clock
/// advances only in `pass_time`, to the next event. Measures how well plans use the links.
class LinkNetwork {
 public:
  LinkNetwork(int size, int64_t latency_ns, size_t segment_bytes, int window)
      : latency_(latency_ns), segment_bytes_(segment_bytes), window_(window) {
    for (int rank = 0; rank < size; ++rank) ports_.push_back(std::make_unique<Port>(*this, rank));
  }

  Transport& of(int rank) { return *ports_[static_cast<size_t>(rank)]; }
  int64_t now_ns() const { return now_; }
  /// Advances the clock to the next event. Returns false when no message is in flight.
  bool pass_time() {
    int64_t next = kNever;
    for (const auto& [channel, queues] : channels_) {
      for (const Sent& sent : queues.sent) {
        if (sent.leaves > now_) next = std::min(next, sent.leaves);
        if (sent.arrives > now_ && sent.arrives != kNever) next = std::min(next, sent.arrives);
      }
    }
    if (next == kNever) return false;
    now_ = next;
    for (auto& [channel, queues] : channels_) {
      Port& to = *ports_[static_cast<size_t>(std::get<1>(channel))];
      for (Sent& sent : queues.sent) {
        if (sent.leaves == now_) sent.arrives = to.take(sent.bytes) + latency_;
      }
    }
    return true;
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Sent {
    int64_t leaves;
    int64_t arrives;  ///< kNever until it has left
    const void* data;
    size_t bytes;
    Message* message;  ///< null once it is done for the sender
  };
  struct Wanted {
    void* data;
    Message* message;
  };
  struct Queues {
    std::deque<Sent> sent;
    std::deque<Wanted> wanted;
  };

  class Port final : public Transport {
   public:
    Port(LinkNetwork& network, int rank) : network_(network), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(network_.ports_.size()); }
    uint64_t tag_limit() const override { return uint64_t{1} << 30; }
    void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) override {
      message.state = Message::State::kPending;
      out_free_ =
          std::max(out_free_, network_.now_) + std::max(static_cast<int64_t>(bytes), int64_t{1});
      network_.channels_[{rank_, to, tag}].sent.push_back(
          {out_free_, kNever, data, bytes, &message});
    }
    void receive(int from, uint64_t tag, void* data, size_t, Message& message) override {
      message.state = Message::State::kPending;
      network_.channels_[{from, rank_, tag}].wanted.push_back({data, &message});
    }
    void cancel(Message&) noexcept override {}
    bool progress() override { return network_.progress(rank_); }
    void sleep(std::chrono::microseconds) override {}
    void wake() noexcept override {}
    /// Returns when the last byte has passed the link to this rank, for bytes that arrived at full
    /// rate.
    int64_t take(size_t bytes) {
      in_free_ = std::max(in_free_ + static_cast<int64_t>(bytes), network_.now_);
      return in_free_;
    }
    size_t segment_bytes() const override { return network_.segment_bytes_; }
    int window() const override { return network_.window_; }

   private:
    LinkNetwork& network_;
    int rank_;
    int64_t out_free_ = 0;
    int64_t in_free_ = 0;
  };

  bool progress(int rank) {
    bool any = false;
    const auto end = [&](Message* message, size_t bytes) {
      message->bytes = bytes;
      message->state = Message::State::kDone;
      any = true;
    };
    for (auto& [channel, queues] : channels_) {
      if (std::get<0>(channel) == rank) {
        for (Sent& sent : queues.sent) {
          if (sent.leaves > now_ || sent.message == nullptr) continue;
          end(sent.message, sent.bytes);
          sent.message = nullptr;
        }
      }
      while (std::get<1>(channel) == rank && !queues.sent.empty() && !queues.wanted.empty() &&
             queues.sent.front().arrives <= now_ && queues.sent.front().message == nullptr) {
        const Sent& sent = queues.sent.front();
        if (sent.bytes > 0) std::memcpy(queues.wanted.front().data, sent.data, sent.bytes);
        end(queues.wanted.front().message, sent.bytes);
        queues.sent.pop_front();
        queues.wanted.pop_front();
      }
    }
    return any;
  }

  int64_t now_ = 0;
  int64_t latency_;
  size_t segment_bytes_;
  int window_;
  std::map<std::tuple<int, int, uint64_t>, Queues> channels_;
  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace lockstep::dist
