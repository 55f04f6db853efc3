#include "core/base/parallel.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// Sets the number of threads of this thread while alive.
class Threads {
 public:
  explicit Threads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

/// Number of visits of each index of [begin, end), and the parts as (first, last).
struct Visits {
  std::vector<std::atomic<int>> counts;
  std::vector<std::pair<int64_t, int64_t>> parts;
  std::mutex mutex;

  Visits(int64_t begin, int64_t end, int64_t grain)
      : counts(static_cast<size_t>(std::max<int64_t>(end - begin, 0))) {
    parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) ++counts[static_cast<size_t>(i - begin)];
      const std::lock_guard lock(mutex);
      parts.emplace_back(first, last);
    });
  }
  bool each_once() const {
    for (const auto& count : counts) {
      if (count != 1) return false;
    }
    return true;
  }
};

RC_GTEST_PROP(ParallelFor, CoversEveryIndexOnceInPartsOfAtLeastTheGrain, ()) {
  const Threads threads(*rc::gen::inRange(1, 9));
  const int64_t begin = *rc::gen::inRange<int64_t>(-50, 50);
  const int64_t end = begin + *rc::gen::inRange<int64_t>(0, 300);
  const int64_t grain = *rc::gen::inRange<int64_t>(0, 400);
  const Visits visits(begin, end, grain);
  RC_ASSERT(visits.each_once());
  RC_ASSERT(static_cast<int>(visits.parts.size()) <= num_threads());
  for (const auto& [first, last] : visits.parts) {
    RC_ASSERT(first < last);
    RC_ASSERT(last == end || last - first >= grain);
  }
}

TEST(ParallelFor, AnEmptyRangeCallsNothing) {
  EXPECT_TRUE(Visits(3, 3, 1).parts.empty());
  EXPECT_TRUE(Visits(3, 2, 1).parts.empty());
}

TEST(ParallelFor, TakesAnyGrainWithoutOverflow) {
  const Threads threads(4);
  EXPECT_EQ(Visits(0, 10, INT64_MAX).parts.size(), 1u);
  EXPECT_TRUE(Visits(0, 10, INT64_MIN).each_once());
  std::atomic<int64_t> length = 0;
  parallel_for(INT64_MAX - 10, INT64_MAX, 3, [&](int64_t a, int64_t b) { length += b - a; });
  EXPECT_EQ(length, 10);
}

TEST(ParallelFor, RunsSmallRangesOnTheCallingThread) {
  const Threads threads(4);
  const auto caller = std::this_thread::get_id();
  parallel_for(0, 10, 10, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ParallelFor, NestedCallsRunOnTheThreadThatMakesThem) {
  const Threads threads(3);
  std::atomic<int> inner = 0;
  std::latch all_begun(3);  // makes sure that workers take parts too
  parallel_for(0, 12, 1, [&](int64_t first, int64_t last) {
    all_begun.arrive_and_wait();
    const auto outer_thread = std::this_thread::get_id();
    for (int64_t i = first; i < last; ++i) {
      parallel_for(0, 8, 1, [&](int64_t a, int64_t b) {
        inner += static_cast<int>(b - a);
        EXPECT_EQ(std::this_thread::get_id(), outer_thread);
      });
    }
  });
  EXPECT_EQ(inner, 12 * 8);
}

TEST(ParallelFor, RethrowsAnExceptionAfterAllPartsAreDone) {
  const Threads threads(4);
  std::atomic<int> running = 0;
  const auto run = [&] {
    parallel_for(0, 4, 1, [&](int64_t first, int64_t) {
      ++running;
      std::this_thread::sleep_for(std::chrono::milliseconds(first * 2));
      --running;
      if (first == 0) throw std::runtime_error("part 0");
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(running, 0);
  EXPECT_TRUE(Visits(0, 100, 1).each_once()) << "the next call must work";
}

TEST(ParallelFor, CutsTheRangeByTheNumberOfThreadsWhoeverIsFree) {
  using Parts = std::vector<std::pair<int64_t, int64_t>>;
  const Parts expected = {{0, 26}, {26, 52}, {52, 78}, {78, 101}};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      set_num_threads(4);
      for (int i = 0; i < 50; ++i) {
        Visits visits(0, 101, 1);
        std::ranges::sort(visits.parts);
        EXPECT_EQ(visits.parts, expected);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ParallelFor, ThreadsOfTheProgramMayCallItAtOnce) {
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([] {
      set_num_threads(2);
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(Visits(0, 100, 1).each_once());
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(NumThreads, IsSetPerThreadAndAtLeastOne) {
  const Threads threads(3);
  EXPECT_EQ(num_threads(), 3);
  std::thread([] {
    EXPECT_GE(num_threads(), 1);
    set_num_threads(7);
  }).join();
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(-2);
  EXPECT_EQ(num_threads(), 1);
  set_num_threads(1 << 20);
  EXPECT_EQ(num_threads(), 4096);
}

/// OpenMP's thread count of the calling thread, if a library has loaded an OpenMP runtime; restores
/// it at the end.
class OpenMpThreads {
 public:
  OpenMpThreads() : before_(exists() ? get() : 0) {}
  ~OpenMpThreads() {
    if (exists()) set(before_);
  }
  static bool exists() { return find("omp_get_max_threads") && find("omp_set_num_threads"); }
  static int get() { return reinterpret_cast<int (*)()>(find("omp_get_max_threads"))(); }
  static void set(int threads) {
    reinterpret_cast<void (*)(int)>(find("omp_set_num_threads"))(threads);
  }

 private:
  static void* find(const char* name) { return dlsym(RTLD_DEFAULT, name); }

  int before_;
};

TEST(LibraryOnOneThread, HoldsInsideEveryPartAndEndsWithTheCall) {
  if (!OpenMpThreads::exists()) GTEST_SKIP() << "no OpenMP runtime in this process";
  const OpenMpThreads restored;
  OpenMpThreads::set(3);
  for (const int threads : {1, 2, 4}) {
    const Threads set(threads);
    std::latch all_begun(threads);  // makes sure that workers take parts too
    parallel_for(0, 8, 1, [&](int64_t first, int64_t) {
      all_begun.arrive_and_wait();
      EXPECT_EQ(OpenMpThreads::get(), 1) << "part from " << first;
    });
    EXPECT_EQ(OpenMpThreads::get(), 3);
  }
  {
    const LibraryOnOneThread one_thread;
    EXPECT_EQ(OpenMpThreads::get(), 1);
  }
  EXPECT_EQ(OpenMpThreads::get(), 3);
}

}  // namespace
}  // namespace lockstep
