#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Simulated ranks, each or each host with a full-duplex link of 1 byte per nanosecond to one
/// switch. The clock advances only in `pass_time`, to the next event. Measures how well plans use
/// the links.
class LinkNetwork {
 public:
  /// `hosts`, by rank: ranks of a host share its link, and exchange messages without it in no time.
  /// Empty: each has its own.
  LinkNetwork(int size, int64_t latency_ns, size_t segment_bytes, int window,
              std::vector<int> hosts = {})
      : latency_(latency_ns),
        segment_bytes_(segment_bytes),
        window_(window),
        hosts_(std::move(hosts)),
        links_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      if (hosts_.size() < ports_.size() + 1) hosts_.push_back(rank);
      ports_.push_back(std::make_unique<Port>(*this, rank));
    }
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
      const auto [from, to, tag] = channel;
      for (Sent& sent : queues.sent) {
        if (sent.leaves != now_ || sent.arrives != kNever) continue;
        sent.arrives = is_local(from, to) ? now_ : link(to).take(sent.bytes, now_) + latency_;
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
  /// The link of a host.
  struct Link {
    int64_t out_free = 0;
    int64_t in_free = 0;

    int64_t leave(size_t bytes, int64_t now) {
      out_free = std::max(out_free, now) + std::max(static_cast<int64_t>(bytes), int64_t{1});
      return out_free;
    }
    /// Returns when the last byte has passed the link, for bytes that arrived at full rate.
    int64_t take(size_t bytes, int64_t now) {
      in_free = std::max(in_free + static_cast<int64_t>(bytes), now);
      return in_free;
    }
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
      const int64_t leaves = network_.is_local(rank_, to)
                                 ? network_.now_ + 1
                                 : network_.link(rank_).leave(bytes, network_.now_);
      network_.channels_[{rank_, to, tag}].sent.push_back({leaves, kNever, data, bytes, &message});
    }
    void receive(int from, uint64_t tag, void* data, size_t, Message& message) override {
      message.state = Message::State::kPending;
      network_.channels_[{from, rank_, tag}].wanted.push_back({data, &message});
    }
    void cancel(Message&) noexcept override {}
    bool progress() override { return network_.progress(rank_); }
    void sleep(std::chrono::microseconds) override {}
    void wake() noexcept override {}
    size_t segment_bytes() const override { return network_.segment_bytes_; }
    int window() const override { return network_.window_; }

   private:
    LinkNetwork& network_;
    int rank_;
  };

  Link& link(int rank) { return links_[static_cast<size_t>(hosts_[static_cast<size_t>(rank)])]; }
  bool is_local(int a, int b) const {
    return hosts_[static_cast<size_t>(a)] == hosts_[static_cast<size_t>(b)];
  }

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
  std::vector<int> hosts_;
  std::vector<Link> links_;  ///< by host
  std::map<std::tuple<int, int, uint64_t>, Queues> channels_;
  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace lockstep::dist
