#include "dist/transport/bell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "dist/transport/shared_memory.h"
#include "tests/core/base/child_process.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A bell whose state is in private memory.
struct OwnBell {
  BellState state;
  Bell bell;
  OwnBell() { bell.attach(state); }
};

/// Sleeps until `ready`, with or without files. Returns false if a missed ring delays that by 20 s.
template <class Ready>
bool sleep_until(Bell& bell, bool with_files, Ready ready) {
  const auto deadline = Clock::now() + 20s;
  while (!ready()) {
    bell.prepare(with_files);
    if (ready()) {
      bell.stay_awake();
      return true;
    }
    std::array<pollfd, 1> files{};
    if (with_files) {
      bell.sleep(30s, files);
    } else {
      bell.sleep(30s);
    }
    if (Clock::now() > deadline) return false;
  }
  return true;
}

TEST(Bell, ARingEndsOneSleepWithFilesAndNotTheNext) {
  OwnBell one;
  std::array<pollfd, 1> files{};
  one.bell.prepare(/*for_files=*/true);
  one.bell.ring();
  one.bell.sleep(30s, files);
  EXPECT_NE(files[0].revents, 0);
  one.bell.prepare(/*for_files=*/true);
  one.bell.sleep(1ms, files);
  EXPECT_EQ(files[0].revents, 0) << "nobody rang";
}

class BellTest : public testing::TestWithParam<bool> {};

TEST_P(BellTest, WakesThreadsThatTakeTurns) {
  OwnBell bells[2];
  std::atomic<uint32_t> turn = 0;
  bool well[2] = {true, true};
  const auto take_turns = [&](uint32_t mine) {
    for (uint32_t i = mine; i < 2000 && well[mine]; i += 2) {
      well[mine] = sleep_until(bells[mine].bell, GetParam(), [&] { return turn.load() == i; });
      turn = i + 1;
      bells[1 - mine].bell.ring();
    }
  };
  std::thread other(take_turns, 1);
  take_turns(0);
  other.join();
  EXPECT_TRUE(well[0] && well[1]) << "slept through a ring";
}

TEST_P(BellTest, WakesAnotherProcess) {
  const SharedMemory memory = SharedMemory::create(4096);
  struct Shared {
    BellState bell;
    std::atomic<bool> ready;
  };
  auto* const shared = new (memory.data()) Shared;
  Bell bell;
  bell.attach(shared->bell);
  const pid_t child = fork_when_idle();
  if (child == 0) {
    alarm(20);
    const std::string path =
        "/proc/" + std::to_string(getppid()) + "/fd/" + std::to_string(bell.fd());
    const int fd = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    usleep(20'000);
    shared->ready.store(true);
    shared->bell.ring(fd);
    _exit(fd >= 0 ? 0 : 1);
  }
  const auto start = Clock::now();
  EXPECT_TRUE(sleep_until(bell, GetParam(), [&] { return shared->ready.load(); }));
  EXPECT_LT(Clock::now() - start, 15s);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(BellTest, ASleepEndsAtItsLimit) {
  OwnBell own;
  const auto start = Clock::now();
  own.bell.prepare(GetParam());
  std::array<pollfd, 1> files{};
  if (GetParam()) {
    own.bell.sleep(5ms, files);
  } else {
    own.bell.sleep(5ms);
  }
  EXPECT_GE(Clock::now() - start, 4ms);
  EXPECT_LT(Clock::now() - start, 15s);
}

INSTANTIATE_TEST_SUITE_P(Ways, BellTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "WithFiles" : "Alone"; });

TEST(Bell, ASleepWithFilesEndsWhenOneIsReadyAndTellsWhich) {
  OwnBell own;
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  std::array<pollfd, 2> files{pollfd{}, pollfd{ends[0], POLLIN, 0}};
  own.bell.prepare(true);
  own.bell.sleep(20s, files);
  EXPECT_EQ(files[0].revents, 0);
  EXPECT_EQ(files[1].revents, POLLIN);
  close(ends[0]);
  close(ends[1]);
}

TEST(Bell, RingingWhereNobodySleepsLeavesNothingBehind) {
  OwnBell own;
  own.bell.ring();
  std::array<pollfd, 1> files{};
  own.bell.prepare(true);
  own.bell.sleep(1ms, files);
  EXPECT_EQ(files[0].revents, 0);
}

}  // namespace
}  // namespace lockstep::dist
