#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Makes progress until `done()`. Returns false after 20 s.
template <class Done>
bool drive(Transport& transport, Done done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (!transport.progress()) transport.sleep(std::chrono::seconds(1));
  }
  return true;
}
inline bool drive(Transport& transport, const Message& message) {
  return drive(transport, [&] { return message.state != Message::State::kPending; });
}
/// Makes progress for the given time.
inline void drive_for(Transport& transport, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (!transport.progress()) transport.sleep(std::chrono::milliseconds(1));
  }
}

/// Pseudo-random bytes determined by the seed.
inline std::vector<std::byte> contents(uint64_t seed, size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(((seed + i) * 0x9e3779b97f4a7c15U) >> 56);
  }
  return data;
}

/// A message and its buffer.
struct Sending {
  std::vector<std::byte> data;
  Message message;
};

/// All ranks exchange messages with tags and sizes from a shared plan; each posts its sends and
/// receives in a different random order.
inline void exchange_randomly(Transport& transport, uint32_t seed, int messages,
                              size_t most_bytes) {
  struct Planned {
    int from, to;
    uint64_t tag;
    size_t bytes;
    uint64_t contents;
  };
  std::mt19937 random(seed);
  std::vector<Planned> plan;
  for (int i = 0; i < messages; ++i) {
    const int size = transport.size();
    const int from = static_cast<int>(random() % static_cast<uint32_t>(size));
    const int to = (from + 1 + static_cast<int>(random() % static_cast<uint32_t>(size - 1))) % size;
    const size_t bytes = random() % 4 == 0 ? random() % most_bytes : random() % 200;
    plan.push_back({from, to, random() % 5, bytes, uint64_t{seed} * 1'000'000 + random()});
  }
  // Each rank's order of posting: that of the plan for each tag, random between tags.
  std::mt19937 own(seed * 31 + static_cast<uint32_t>(transport.rank()));
  std::vector<std::deque<const Planned*>> queues;
  for (int peer = 0; peer < transport.size(); ++peer) {
    for (uint64_t tag = 0; tag < 5; ++tag) {
      std::deque<const Planned*> sends, receives;
      for (const Planned& one : plan) {
        if (one.tag != tag) continue;
        if (one.from == transport.rank() && one.to == peer) sends.push_back(&one);
        if (one.to == transport.rank() && one.from == peer) receives.push_back(&one);
      }
      if (!sends.empty()) queues.push_back(std::move(sends));
      if (!receives.empty()) queues.push_back(std::move(receives));
    }
  }
  std::deque<Sending> all;
  std::vector<std::pair<const Planned*, Sending*>> received;
  while (!queues.empty()) {
    const size_t chosen = own() % queues.size();
    const Planned& one = *queues[chosen].front();
    queues[chosen].pop_front();
    if (queues[chosen].empty()) queues.erase(queues.begin() + static_cast<ptrdiff_t>(chosen));
    Sending& sending = all.emplace_back();
    if (one.from == transport.rank()) {
      sending.data = contents(one.contents, one.bytes);
      transport.send(one.to, one.tag, sending.data.data(), one.bytes, sending.message);
    } else {
      sending.data.resize(one.bytes);
      transport.receive(one.from, one.tag, sending.data.data(), one.bytes, sending.message);
      received.emplace_back(&one, &sending);
    }
    if (own() % 8 == 0) transport.progress();
  }
  const bool ended = drive(transport, [&] {
    return std::ranges::none_of(
        all, [](const Sending& one) { return one.message.state == Message::State::kPending; });
  });
  EXPECT_TRUE(ended) << "seed " << seed;
  for (const Sending& one : all) {
    EXPECT_EQ(one.message.state, Message::State::kDone) << one.message.error;
  }
  for (const auto& [planned, sending] : received) {
    EXPECT_EQ(sending->message.bytes, planned->bytes);
    EXPECT_TRUE(sending->data == contents(planned->contents, planned->bytes))
        << "other bytes: seed " << seed << ", from " << planned->from << ", tag " << planned->tag;
  }
}

}  // namespace lockstep::dist
