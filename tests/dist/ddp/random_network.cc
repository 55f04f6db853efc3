#include "tests/dist/ddp/random_network.h"

#include <algorithm>
#include <cstring>

namespace lockstep::dist {

namespace {

/// Fill of a receive buffer until its message arrives.
constexpr std::byte kUntouched{0xa5};

}  // namespace

class RandomNetwork::Port final : public Transport {
 public:
  Port(RandomNetwork& network, int rank) : network_(network), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(network_.ports_.size()); }
  uint64_t tag_limit() const override { return uint64_t{1} << 30; }

  void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) override {
    message.state = Message::State::kPending;
    network_.bytes_sent_[static_cast<size_t>(rank_)] += bytes;
    ++network_.messages_sent_[static_cast<size_t>(rank_)];
    const auto* first = static_cast<const std::byte*>(data);
    auto& queue = network_.channels_[{rank_, to, tag}].sent;
    queue.push_back({first, std::vector<std::byte>(first, first + bytes), &message});
    note_in_flight(std::count_if(queue.begin(), queue.end(),
                                 [](const Sent& sent) { return sent.message != nullptr; }));
  }
  void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) override {
    message.state = Message::State::kPending;
    auto* first = static_cast<std::byte*>(data);
    std::fill(first, first + bytes, kUntouched);
    auto& queue = network_.channels_[{from, rank_, tag}].wanted;
    queue.push_back({first, bytes, &message});
    note_in_flight(static_cast<ptrdiff_t>(queue.size()));
  }
  void cancel(Message& message) noexcept override {
    for (auto& [channel, queues] : network_.channels_) {
      std::erase_if(queues.wanted, [&](const Wanted& x) { return x.message == &message; });
      for (Sent& sent : queues.sent) {
        if (sent.message == &message) sent.message = nullptr;
      }
    }
    message.state = Message::State::kIdle;
  }
  bool progress() override { return network_.progress(rank_); }
  void sleep(std::chrono::microseconds) override {}
  void wake() noexcept override {}
  size_t segment_bytes() const override { return 4096; }
  int window() const override { return network_.window_; }

 private:
  void note_in_flight(ptrdiff_t count) {
    network_.most_in_flight_ = std::max(network_.most_in_flight_, static_cast<size_t>(count));
  }

  RandomNetwork& network_;
  int rank_;
};

RandomNetwork::RandomNetwork(int size, uint64_t seed, int window)
    : random_(seed),
      window_(window),
      dead_(static_cast<size_t>(size)),
      bytes_sent_(static_cast<size_t>(size)),
      messages_sent_(static_cast<size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) ports_.push_back(std::make_unique<Port>(*this, rank));
}

RandomNetwork::~RandomNetwork() = default;

Transport& RandomNetwork::of(int rank) { return *ports_[static_cast<size_t>(rank)]; }

void RandomNetwork::kill(int rank) { dead_[static_cast<size_t>(rank)] = true; }

size_t RandomNetwork::left_over() const {
  size_t count = 0;
  for (const auto& [channel, queues] : channels_) {
    count += queues.sent.size() + queues.wanted.size();
  }
  return count;
}

void RandomNetwork::tell(Sent& sent, const Channel& channel) {
  if (sent.message == nullptr) return;
  if (!std::equal(sent.copy.begin(), sent.copy.end(), sent.data)) {
    complaints_.push_back("rank " + std::to_string(std::get<0>(channel)) +
                          " changed a message that had not left");
  }
  sent.message->bytes = sent.copy.size();
  sent.message->state = Message::State::kDone;
  sent.message = nullptr;
}

void RandomNetwork::fail(Message* message, int rank) {
  if (message == nullptr) return;
  message->error = "rank " + std::to_string(rank) + " is gone";
  message->state = Message::State::kFailed;
}

void RandomNetwork::deliver(Queues& queues, const Channel& channel) {
  Sent sent = std::move(queues.sent.front());
  const Wanted wanted = queues.wanted.front();
  queues.sent.pop_front();
  queues.wanted.pop_front();
  tell(sent, channel);
  if (sent.copy.size() > wanted.bytes) {
    wanted.message->error = "the message is longer than its memory";
    wanted.message->state = Message::State::kFailed;
    return;
  }
  if (!std::all_of(wanted.data, wanted.data + wanted.bytes,
                   [](std::byte byte) { return byte == kUntouched; })) {
    complaints_.push_back("rank " + std::to_string(std::get<1>(channel)) +
                          " wrote where a message was to arrive");
  }
  if (!sent.copy.empty()) std::memcpy(wanted.data, sent.copy.data(), sent.copy.size());
  wanted.message->bytes = sent.copy.size();
  wanted.message->state = Message::State::kDone;
}

bool RandomNetwork::progress(int rank) {
  bool any = false;
  for (auto& [channel, queues] : channels_) {
    const auto [from, to, tag] = channel;
    if (dead_[static_cast<size_t>(from)] || dead_[static_cast<size_t>(to)]) {
      const int dead = dead_[static_cast<size_t>(from)] ? from : to;
      for (Sent& sent : queues.sent) fail(sent.message, dead);
      for (const Wanted& wanted : queues.wanted) fail(wanted.message, dead);
      any |= !queues.sent.empty() || !queues.wanted.empty();
      queues = {};
      continue;
    }
    // A send completes at random before its message arrives, or when it arrives.
    if (from == rank) {
      for (Sent& sent : queues.sent) {
        if (sent.message == nullptr) continue;
        if (!one_of(4)) break;  // sends complete in order
        tell(sent, channel);
        any = true;
      }
    }
    while (to == rank && !queues.sent.empty() && !queues.wanted.empty() && one_of(2)) {
      deliver(queues, channel);
      any = true;
    }
  }
  return any;
}

}  // namespace lockstep::dist
