#include "dist/transport/shm_ring.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::dist {
namespace {

constexpr size_t kCapacity = 256;

/// A ring in private memory, with both ends.
struct Ring {
  RingPositions positions;
  std::vector<std::byte> memory = std::vector<std::byte>(kCapacity);
  RingWriter writer{positions, memory.data(), kCapacity};
  RingReader reader{positions, memory.data(), kCapacity};
};

/// Byte `i` of a pseudo-random stream.
std::byte nth(uint64_t i) { return static_cast<std::byte>((i * 0x9e3779b97f4a7c15U) >> 56); }

void write_next(RingWriter& writer, uint64_t& at, size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = nth(at++);
  writer.write(data.data(), data.size());
}

/// Whether the next bytes read are those of the stream.
bool read_next(RingReader& reader, uint64_t& at, size_t bytes) {
  std::vector<std::byte> data(bytes);
  reader.read(data.data(), data.size());
  return std::ranges::all_of(data, [&](std::byte byte) { return byte == nth(at++); });
}

RC_GTEST_PROP(ShmRing, GivesTheBytesThatWereWrittenInOrder, ()) {
  Ring ring;
  uint64_t written = 0;
  uint64_t published = 0;
  uint64_t read = 0;
  uint64_t released = 0;
  for (const auto& [write, bytes] : *rc::gen::container<std::vector<std::pair<bool, size_t>>>(
           rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::inRange<size_t>(0, kCapacity + 1)))) {
    if (write) {
      RC_ASSERT(ring.writer.room(kCapacity + 1) == kCapacity - (written - released));
      write_next(ring.writer, written, std::min(bytes, ring.writer.room(bytes)));
      if (bytes % 3 == 0) continue;  // published with the next write
      RC_ASSERT(ring.writer.publish() == (written > published));
      published = written;
    } else {
      RC_ASSERT(ring.reader.available(kCapacity + 1) == published - read);
      RC_ASSERT(read_next(ring.reader, read, std::min(bytes, ring.reader.available(bytes))));
      if (bytes % 3 == 0) continue;  // released with the next read
      RC_ASSERT(!ring.reader.release());
      released = read;
    }
  }
}

TEST(ShmRing, AlignedEndsLeaveOutTheSameBytes) {
  Ring ring;
  for (uint64_t round = 0; round < 100; ++round) {
    const size_t bytes = round % 30;
    uint64_t written = round;
    uint64_t read = round;
    write_next(ring.writer, written, bytes);
    ring.writer.align(32);
    ring.writer.publish();
    EXPECT_EQ(ring.reader.available(), (bytes + 31) / 32 * 32);
    EXPECT_TRUE(read_next(ring.reader, read, bytes));
    ring.reader.align(32);
    ring.reader.release();
    EXPECT_EQ(ring.writer.room(kCapacity), kCapacity);
  }
}

TEST(ShmRing, AWriterThatWantsRoomIsNoticedByTheReleaseThatMakesIt) {
  Ring ring;
  uint64_t written = 0;
  uint64_t read = 0;
  for (int round = 0; round < 5; ++round) {
    write_next(ring.writer, written, ring.writer.room(kCapacity));
    ring.writer.publish();
    ring.writer.want(100);
    ring.reader.available();
    EXPECT_TRUE(read_next(ring.reader, read, 99));
    EXPECT_FALSE(ring.reader.release());
    EXPECT_TRUE(read_next(ring.reader, read, 1));
    EXPECT_TRUE(ring.reader.release());
    EXPECT_EQ(ring.writer.room(kCapacity), 100u);
    ring.writer.stop_wanting();
    EXPECT_TRUE(read_next(ring.reader, read, 50));
    EXPECT_FALSE(ring.reader.release());
  }
}

TEST(ShmRing, CarriesAStreamBetweenThreadsInPiecesOfAnySize) {
  constexpr uint64_t kTotal = 1 << 15;
  Ring ring;
  std::thread reading([&] {
    for (uint64_t at = 0; at < kTotal;) {
      const size_t bytes = std::min<size_t>(ring.reader.available(), 1 + at % 97);
      if (bytes == 0) {
        std::this_thread::yield();
        continue;
      }
      const uint64_t before = at;
      if (!read_next(ring.reader, at, bytes)) {
        ADD_FAILURE() << "other bytes within " << bytes << " from " << before;
        return;
      }
      ring.reader.release();
    }
  });
  for (uint64_t at = 0; at < kTotal;) {
    const size_t bytes =
        std::min<size_t>({ring.writer.room(1), 1 + at % 89, static_cast<size_t>(kTotal - at)});
    if (bytes == 0) {
      std::this_thread::yield();
      continue;
    }
    write_next(ring.writer, at, bytes);
    ring.writer.publish();
  }
  reading.join();
}

TEST(ShmRing, AWriterThatWantsRoomEitherFindsItOrIsNoticed) {
  constexpr int kRounds = 500;
  constexpr size_t kBytes = kCapacity / 2;
  Ring ring;
  std::atomic<bool> noticed = false;
  std::atomic<bool> stop = false;
  std::thread reading([&] {
    std::vector<std::byte> data(kBytes);
    for (int round = 0; round < kRounds; ++round) {
      while (ring.reader.available(kBytes) < kBytes) {
        if (stop) return;
        std::this_thread::yield();
      }
      ring.reader.read(data.data(), kBytes);
      if (ring.reader.release()) noticed.store(true, std::memory_order_seq_cst);
    }
  });
  const std::vector<std::byte> data(kBytes);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int round = 0; round < kRounds && !stop; ++round) {
    noticed = false;
    ring.writer.want(kBytes);
    while (ring.writer.room(kBytes) < kBytes && !stop) {
      // Acts like a writer that sleeps until it is woken.
      while (!noticed.exchange(false) && !stop) {
        std::this_thread::yield();
        stop = std::chrono::steady_clock::now() > deadline;
      }
    }
    ring.writer.stop_wanting();
    ring.writer.write(data.data(), kBytes);
    ring.writer.publish();
  }
  EXPECT_FALSE(stop) << "the writer slept for ever";
  reading.join();
}

}  // namespace
}  // namespace lockstep::dist
