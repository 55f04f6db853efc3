#include "core/parallel.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#ifndef LOCKSTEP_SERIAL
#include <omp.h>
#endif

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

/// How often each index of [begin, end) was visited, and the parts.
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
  parallel_for(0, 12, 1, [&](int64_t first, int64_t last) {
    const auto outer_thread = std::this_thread::get_id();
    for (int64_t i = first; i < last; ++i) {
      parallel_for(0, 8, 1, [&](int64_t a, int64_t b) {
        inner += static_cast<int>(b - a);
        // Serial builds, and a runtime that gives one thread, nest in the caller anyway.
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
}

#ifndef LOCKSTEP_SERIAL
TEST(ParallelFor, CoversTheRangeWhenTheRuntimeGivesFewerThreads) {
  const Threads threads(64);
  const int before = omp_get_dynamic();
  omp_set_dynamic(1);  // the runtime may now cut the number to the cores
  EXPECT_TRUE(Visits(0, 640, 1).each_once());
  omp_set_dynamic(before);
}
#endif

}  // namespace
}  // namespace lockstep
