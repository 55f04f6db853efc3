#include "core/base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <latch>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/core/base/child_process.h"

namespace lockstep::thread_pool {
namespace {

/// Calls `body(part)` only after all parts have begun, so that each runs on its own thread: part 0
/// on the caller, the others on workers.
template <class Body>
void run_side_by_side(int64_t parts, Body body) {
  std::latch all_begun(parts);
  run(parts, [&](int64_t part) {
    all_begun.arrive_and_wait();
    body(part);
  });
}

TEST(ThreadPool, GivesEachPartItsOwnThreadWhereAllTakeTime) {
  std::vector<std::thread::id> threads(5);
  run_side_by_side(
      5, [&](int64_t part) { threads[static_cast<size_t>(part)] = std::this_thread::get_id(); });
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), 5u);
}

TEST(ThreadPool, GrowsToTheLargestCallAndStaysSo) {
  const int before = workers();
  const int wanted = before + 3;
  run_side_by_side(wanted + 1, [](int64_t) {});
  EXPECT_EQ(workers(), wanted);
  run_side_by_side(2, [](int64_t) {});
  run_side_by_side(wanted + 1, [](int64_t) {});
  EXPECT_EQ(workers(), wanted);
}

TEST(ThreadPool, AWorkerHasItsPartInEveryCall) {
  std::vector<std::thread::id> first(4);
  run_side_by_side(
      4, [&](int64_t part) { first[static_cast<size_t>(part)] = std::this_thread::get_id(); });
  for (int i = 0; i < 20; ++i) {
    run_side_by_side(4, [&](int64_t part) {
      EXPECT_EQ(std::this_thread::get_id(), first[static_cast<size_t>(part)]);
    });
  }
}

TEST(ThreadPool, ACallDoesNotWaitForWorkersThatAreBusyElsewhere) {
  std::atomic<bool> release = false;
  std::latch busy(1);
  std::thread other([&] {
    // Occupies all existing workers, and as many as a call of two parts could start in addition.
    run_side_by_side(std::max(workers(), allowed_cores()) + 2, [&](int64_t part) {
      if (part == 0) busy.count_down();
      release.wait(false);
    });
  });
  busy.wait();
  std::vector<std::thread::id> threads(2);
  run(2, [&](int64_t part) { threads[static_cast<size_t>(part)] = std::this_thread::get_id(); });
  release = true;
  release.notify_all();
  other.join();
  EXPECT_EQ(threads, std::vector(2, std::this_thread::get_id()));
}

TEST(ThreadPool, WorkersAreNamedByNumber) {
  std::vector<std::string> names(3);
  run_side_by_side(3, [&](int64_t part) {
    char name[16] = {};
    ASSERT_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    names[static_cast<size_t>(part)] = name;
  });
  EXPECT_EQ(names[1], "ls-worker-0");
  EXPECT_EQ(names[2], "ls-worker-1");
}

TEST(ThreadPool, WorkersTakeNoSignalsButTheirOwnFaults) {
  run_side_by_side(3, [&](int64_t part) {
    sigset_t blocked;
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) {
      EXPECT_EQ(sigismember(&blocked, signal), part != 0) << signal;
    }
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      EXPECT_FALSE(sigismember(&blocked, fault)) << fault;
    }
  });
}

TEST(ThreadPool, WorkersStartWithTheDefaultFloatingPointEnvironment) {
  // A new thread would inherit the environment of the thread that creates it.
  std::fenv_t before;
  ASSERT_EQ(std::fegetenv(&before), 0);
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
  const int64_t parts = workers() + 3;  // starts two new workers
  std::vector<int> rounding(parts, -1);
  std::vector<unsigned> control(parts, 0);
  run_side_by_side(parts, [&](int64_t part) {
    rounding[part] = std::fegetround();
#if defined(__x86_64__)
    control[part] = _mm_getcsr() & 0xFFC0;  // masks the sticky exception flags
#endif
  });
  ASSERT_EQ(std::fesetenv(&before), 0);
  EXPECT_EQ(rounding[0], FE_UPWARD);
  for (int64_t part = 1; part < parts; ++part) {
    EXPECT_EQ(rounding[part], FE_TONEAREST) << "part " << part;
#if defined(__x86_64__)
    EXPECT_EQ(control[part], 0x1F80u) << "part " << part;
#endif
  }
}

TEST(ThreadPool, RethrowsOneExceptionAfterAllPartsHaveRun) {
  std::atomic<int> done = 0;
  const auto throw_in_all = [&] {
    run_side_by_side(4, [&](int64_t part) {
      ++done;
      throw std::runtime_error("part " + std::to_string(part));
    });
  };
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW(throw_in_all(), std::runtime_error);
    EXPECT_EQ(done, 4 * (i + 1));
  }
  EXPECT_FALSE(in_part());
}

TEST(ThreadPool, RunsEachPartOnceHoweverManyThereAre) {
  for (const int64_t parts : {1, 2, 63, 64, 65, 130}) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(parts));
    run(parts, [&](int64_t part) { ++visits[static_cast<size_t>(part)]; });
    for (const auto& count : visits) EXPECT_EQ(count, 1);
  }
}

/// Sums 1 to n in parts; every `slow`-th part sleeps, none if 0.
int64_t sum_in_parts(int64_t parts, int64_t slow) {
  std::vector<int64_t> sums(static_cast<size_t>(parts));
  run(parts, [&](int64_t part) {
    if (slow != 0 && part % slow == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    sums[static_cast<size_t>(part)] = part + 1;
  });
  return std::accumulate(sums.begin(), sums.end(), int64_t{0});
}

RC_GTEST_PROP(ThreadPool, CallsOfManyThreadsAtOnceEachGetAllTheirParts, ()) {
  const int callers = *rc::gen::inRange(1, 5);
  const int calls = *rc::gen::inRange(1, 40);
  const auto sizes = *rc::gen::container<std::vector<int64_t>>(8, rc::gen::inRange<int64_t>(2, 12));
  const auto slow = *rc::gen::inRange<int64_t>(0, 5);
  const bool throws = *rc::gen::arbitrary<bool>();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i) {
        const int64_t parts = sizes[static_cast<size_t>(i + t) % sizes.size()];
        if (sum_in_parts(parts, i % 4 == 0 ? slow : 0) != parts * (parts + 1) / 2) ++wrong;
        if (!throws) continue;
        try {
          run(parts, [&](int64_t part) {
            if (part == parts - 1) throw part;
          });
          ++wrong;
        } catch (int64_t part) {
          if (part != parts - 1) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  RC_ASSERT(wrong == 0);
}

TEST(ThreadPool, AForkedChildStartsWorkersOfItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses threads after a fork";
  run_side_by_side(4, [](int64_t) {});
  EXPECT_EQ(status_of_child([] {
              if (workers() != 0) return false;
              std::atomic<int> parts = 0;
              run_side_by_side(3, [&](int64_t) { ++parts; });
              return parts == 3 && workers() == 2;
            }),
            0);
  run_side_by_side(4, [](int64_t) {});
}

TEST(ThreadPool, MayBeForkedWhileOtherThreadsUseIt) {
  if (!kForksAmongBusyThreads) GTEST_SKIP() << "the allocator may stay locked in a child";
  std::atomic<bool> stop = false;
  std::vector<std::thread> callers;
  for (int t = 0; t < 2; ++t) {
    callers.emplace_back([&] {
      while (!stop) EXPECT_EQ(sum_in_parts(6, 0), 21);
    });
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(status_of_child([] { return sum_in_parts(3, 0) == 6; }), 0);
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

/// Each test runs in a new process that ends by exit().
class ThreadPoolAtExit : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    alarm(60);  // ends the new process if it hangs
  }
  void TearDown() override { alarm(0); }
};

/// Number of threads of this process, without ThreadSanitizer's own.
int64_t threads_alive() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks)) - (kThreadSanitizer ? 1 : 0);
}

/// As a static object it is destroyed after the thread-local objects of the main thread.
struct ExitsWith3WhereNoWorkerIsLeft {
  ~ExitsWith3WhereNoWorkerIsLeft() {
    std::vector<std::thread::id> threads(2);
    run(2, [&](int64_t part) { threads[static_cast<size_t>(part)] = std::this_thread::get_id(); });
    const bool alone = threads[0] == threads[1];
    // The kernel lists a thread for a moment after join returns.
    for (int i = 0; i < 1000 && threads_alive() > 1; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    _exit(alone && threads_alive() == 1 ? 3 : 4);
  }
};

TEST_F(ThreadPoolAtExit, WorkersAreJoinedAndCallsRunOnTheirCaller) {
  EXPECT_EXIT(
      {
        run_side_by_side(4, [](int64_t) {});
        static const ExitsWith3WhereNoWorkerIsLeft last;
        std::exit(5);
      },
      testing::ExitedWithCode(3), "");
}

TEST_F(ThreadPoolAtExit, AnExitInAPartOfTheMainThreadEndsTheProgram) {
  EXPECT_EXIT(run_side_by_side(3,
                               [](int64_t part) {
                                 if (part == 0) std::exit(3);
                                 while (true) pause();
                               }),
              testing::ExitedWithCode(3), "");
}

TEST_F(ThreadPoolAtExit, AnExitInAPartOfAWorkerEndsTheProgram) {
  EXPECT_EXIT(run_side_by_side(3,
                               [](int64_t part) {
                                 if (part == 1) std::exit(3);
                                 while (true) pause();
                               }),
              testing::ExitedWithCode(3), "");
}

TEST_F(ThreadPoolAtExit, AnExitWhileAnotherThreadCallsEndsTheProgram) {
  EXPECT_EXIT(
      {
        std::latch calling(1);
        std::thread([&] {
          for (int i = 0;; ++i) {
            run(3, [](int64_t) {});
            if (i == 100) calling.count_down();
          }
        }).detach();
        calling.wait();
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace lockstep::thread_pool
