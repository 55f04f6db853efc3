#include "dist/transport/thread_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"

namespace lockstep::dist {
namespace {

/// A message between two threads. The sender may withdraw it until the receiver begins to copy.
struct Envelope {
  enum class State : uint8_t { kWaiting, kCopying, kCopied, kRefused, kForgotten };

  int from = 0;
  uint64_t tag = 0;
  const void* data = nullptr;
  size_t bytes = 0;
  std::atomic<State> state{State::kWaiting};
};
using SharedEnvelope = std::shared_ptr<Envelope>;

/// Messages and notices from the other ranks to one rank.
class Inbox {
 public:
  /// Returns false if the rank's transport was destroyed.
  bool put(SharedEnvelope envelope) {
    {
      const MutexLock held(lock_);
      if (closed_) return false;
      arrived_.push_back(std::move(envelope));
      news_ = true;
    }
    filled_.notify_one();
    return true;
  }
  /// Tells the rank that the transport of `rank` was destroyed.
  void put_end_of(int rank) {
    {
      const MutexLock held(lock_);
      gone_.push_back(rank);
      news_ = true;
    }
    filled_.notify_one();
  }
  /// Ends the current sleep, or the next one if there is none.
  void wake() {
    {
      const MutexLock held(lock_);
      news_ = true;
    }
    filled_.notify_one();
  }
  /// Waits until something has arrived since the last sleep.
  void sleep(std::chrono::microseconds limit) {
    UniqueLock held(lock_);
    filled_.wait_for(held, limit, [&]() LS_REQUIRES(lock_) { return news_; });
    news_ = false;
  }
  /// Exchanges the empty vectors for what has arrived and the ranks that have gone.
  void take(std::vector<SharedEnvelope>& arrived, std::vector<int>& gone) {
    const MutexLock held(lock_);
    arrived.swap(arrived_);
    gone.swap(gone_);
  }
  /// Refuses further messages; returns those that were not taken.
  std::vector<SharedEnvelope> close() {
    const MutexLock held(lock_);
    closed_ = true;
    return std::move(arrived_);
  }

 private:
  Mutex lock_;
  CondVar filled_;
  std::vector<SharedEnvelope> arrived_ LS_GUARDED_BY(lock_);
  std::vector<int> gone_ LS_GUARDED_BY(lock_);
  bool news_ LS_GUARDED_BY(lock_) = false;  ///< something arrived since the last sleep
  bool closed_ LS_GUARDED_BY(lock_) = false;
};

using Network = std::vector<Inbox>;

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Network> network, int rank)
      : network_(std::move(network)), rank_(rank), gone_(network_->size(), false) {}

  ~ThreadTransport() override {
    for (const Sent& sent : sent_) forget(*sent.envelope);
    for (const SharedEnvelope& envelope : own().close()) refuse(*envelope);
    for (auto& [key, queue] : waiting_) {
      for (const SharedEnvelope& envelope : queue) refuse(*envelope);
    }
    for (Inbox& inbox : *network_) {
      if (&inbox != &own()) inbox.put_end_of(rank_);
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(network_->size()); }
  uint64_t tag_limit() const override { return uint64_t{1} << 62; }
  size_t segment_bytes() const override { return size_t{256} << 10; }
  int window() const override { return 4; }

  void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) override {
    const auto envelope = std::make_shared<Envelope>();
    envelope->from = rank_;
    envelope->tag = tag;
    envelope->data = data;
    envelope->bytes = bytes;
    message = {Message::State::kPending, 0, {}};
    if (!network_->at(static_cast<size_t>(to)).put(envelope)) return fail(message, to);
    sent_.push_back({envelope, &message, to});
  }

  void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) override {
    message = {Message::State::kPending, 0, {}};
    posted_[{from, tag}].push_back({data, bytes, &message});
    settle(from, tag);
    if (message.state != Message::State::kPending) ended_at_once_ = true;
  }

  void cancel(Message& message) noexcept override {
    for (auto& [key, queue] : posted_) {
      std::erase_if(queue, [&](const Posted& posted) { return posted.message == &message; });
    }
    std::erase_if(posted_, [](const auto& entry) { return entry.second.empty(); });
    std::erase_if(sent_, [&](const Sent& sent) {
      if (sent.message != &message) return false;
      forget(*sent.envelope);
      return true;
    });
    message.state = Message::State::kIdle;
  }

  bool progress() override {
    bool ended = std::exchange(ended_at_once_, false);
    take_in(ended);
    std::erase_if(sent_, [&](const Sent& sent) {
      const Envelope::State state = sent.envelope->state.load(std::memory_order_acquire);
      if (state == Envelope::State::kRefused) {
        fail(*sent.message, sent.to);
      } else if (state == Envelope::State::kCopied) {
        sent.message->state = Message::State::kDone;
        sent.message->bytes = sent.envelope->bytes;
      } else {
        return false;
      }
      ended = true;
      return true;
    });
    return ended;
  }

  void sleep(std::chrono::microseconds limit) override { own().sleep(limit); }

  void wake() noexcept override { own().wake(); }

 private:
  using Key = std::pair<int, uint64_t>;  // from, tag
  struct Posted {
    void* data;
    size_t bytes;
    Message* message;
  };
  struct Sent {
    SharedEnvelope envelope;
    Message* message;
    int to;
  };

  Inbox& own() const { return (*network_)[static_cast<size_t>(rank_)]; }

  static void fail(Message& message, int peer) {
    message.state = Message::State::kFailed;
    message.error = fmt::format("rank {} has ended", peer);
  }
  static void refuse(Envelope& envelope) noexcept {
    auto state = Envelope::State::kWaiting;
    envelope.state.compare_exchange_strong(state, Envelope::State::kRefused);
  }
  /// Withdraws a message; waits while the receiver copies from the sender's memory.
  static void forget(Envelope& envelope) noexcept {
    auto state = Envelope::State::kWaiting;
    if (envelope.state.compare_exchange_strong(state, Envelope::State::kForgotten)) return;
    while (envelope.state.load(std::memory_order_acquire) == Envelope::State::kCopying) {
      std::this_thread::yield();
    }
  }

  /// Moves arrived messages and notices from the inbox to this rank's tables.
  void take_in(bool& ended) {
    own().take(arrived_, gone_now_);
    for (SharedEnvelope& envelope : arrived_) {
      const Key key{envelope->from, envelope->tag};
      waiting_[key].push_back(std::move(envelope));
      ended |= settle(key.first, key.second);
    }
    arrived_.clear();
    for (const int rank : gone_now_) {
      gone_[static_cast<size_t>(rank)] = true;
      std::vector<uint64_t> tags;
      for (const auto& [key, queue] : posted_) {
        if (key.first == rank) tags.push_back(key.second);
      }
      for (const uint64_t tag : tags) ended |= settle(rank, tag);
    }
    gone_now_.clear();
  }

  /// Matches messages with posted receives of one tag; returns whether a receive has ended.
  bool settle(int from, uint64_t tag) {
    const auto expected = posted_.find({from, tag});
    if (expected == posted_.end()) return false;
    const auto queue = waiting_.find({from, tag});
    bool ended = false;
    while (!expected->second.empty() && queue != waiting_.end() && !queue->second.empty()) {
      const SharedEnvelope envelope = std::move(queue->second.front());
      queue->second.pop_front();
      ended |= copy(*envelope, expected->second.front());
      if (expected->second.front().message->state != Message::State::kPending) {
        expected->second.pop_front();
      }
    }
    if (queue != waiting_.end() && queue->second.empty()) waiting_.erase(queue);
    if (gone_[static_cast<size_t>(from)]) {
      for (const Posted& posted : expected->second) fail(*posted.message, from);
      ended |= !expected->second.empty();
      expected->second.clear();
    }
    if (expected->second.empty()) posted_.erase(expected);
    return ended;
  }

  bool copy(Envelope& envelope, const Posted& posted) {
    auto state = Envelope::State::kWaiting;
    if (!envelope.state.compare_exchange_strong(state, Envelope::State::kCopying)) return false;
    if (envelope.bytes <= posted.bytes) {
      if (envelope.bytes > 0) std::memcpy(posted.data, envelope.data, envelope.bytes);
      posted.message->state = Message::State::kDone;
      posted.message->bytes = envelope.bytes;
    } else {
      posted.message->state = Message::State::kFailed;
      posted.message->bytes = envelope.bytes;
      posted.message->error = fmt::format("rank {} sent {} bytes where {} were expected",
                                          envelope.from, envelope.bytes, posted.bytes);
    }
    envelope.state.store(Envelope::State::kCopied, std::memory_order_release);
    (*network_)[static_cast<size_t>(envelope.from)].wake();
    return true;
  }

  std::shared_ptr<Network> network_;
  int rank_;
  std::vector<bool> gone_;
  bool ended_at_once_ = false;
  std::map<Key, std::deque<Posted>> posted_;
  std::map<Key, std::deque<SharedEnvelope>> waiting_;
  std::vector<Sent> sent_;
  std::vector<SharedEnvelope> arrived_;
  std::vector<int> gone_now_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> thread_transports(int size) {
  LS_CHECK(size >= 1, DistError, "[thread_transports] expected at least 1 rank, got {}.", size);
  const auto network = std::make_shared<Network>(static_cast<size_t>(size));
  std::vector<std::unique_ptr<Transport>> result;
  for (int rank = 0; rank < size; ++rank) {
    result.push_back(std::make_unique<ThreadTransport>(network, rank));
  }
  return result;
}

}  // namespace lockstep::dist
