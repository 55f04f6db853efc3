#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// A network in one thread, for tests of code that uses a Transport. Messages arrive and sends
/// complete at random; messages with the same tag stay in order. Records changes of a message's
/// memory before the message is done, which a real network would not detect.
class RandomNetwork {
 public:
  RandomNetwork(int size, uint64_t seed, int window = 4);
  ~RandomNetwork();

  Transport& of(int rank);
  /// Makes all messages to and from `rank` fail from now on, also those in flight.
  void kill(int rank);

  /// Number of messages without a receive and of receives without a message.
  size_t left_over() const;
  /// Changes of messages' memory while they were in flight.
  const std::vector<std::string>& complaints() const { return complaints_; }
  uint64_t bytes_sent(int rank) const { return bytes_sent_[static_cast<size_t>(rank)]; }
  uint64_t messages_sent(int rank) const { return messages_sent_[static_cast<size_t>(rank)]; }
  /// Largest number of messages ever in flight with one tag between two ranks.
  size_t most_in_flight() const { return most_in_flight_; }

 private:
  class Port;
  struct Sent {
    const std::byte* data;
    std::vector<std::byte> copy;
    Message* message;  ///< null once it is done for the sender
  };
  struct Wanted {
    std::byte* data;
    size_t bytes;
    Message* message;
  };
  /// (from, to, tag)
  using Channel = std::tuple<int, int, uint64_t>;
  struct Queues {
    std::deque<Sent> sent;
    std::deque<Wanted> wanted;
  };

  bool one_of(unsigned n) { return random_() % n == 0; }
  bool progress(int rank);
  void tell(Sent& sent, const Channel& channel);
  void deliver(Queues& queues, const Channel& channel);
  void fail(Message* message, int rank);

  std::mt19937_64 random_;
  int window_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::map<Channel, Queues> channels_;
  std::vector<bool> dead_;
  std::vector<std::string> complaints_;
  std::vector<uint64_t> bytes_sent_;
  std::vector<uint64_t> messages_sent_;
  size_t most_in_flight_ = 0;
};

}  // namespace lockstep::dist
