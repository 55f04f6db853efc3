// Requirements on every JobControl: within one process and over a store.

#include "dist/rendezvous/job_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dist/group/thread_control.h"
#include "dist/rendezvous/store_control.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Controls = std::vector<std::unique_ptr<JobControl>>;

/// A job of one implementation; creates the controls of its ranks.
class Job {
 public:
  virtual ~Job() = default;
  virtual std::unique_ptr<JobControl> control(int rank) = 0;
};

class InThreads final : public Job {
 public:
  explicit InThreads(int size) : job_(size) {}
  std::unique_ptr<JobControl> control(int rank) override { return job_.control(rank); }

 private:
  ThreadJob job_;
};

class OverAStore final : public Job {
 public:
  explicit OverAStore(int size) : job_(size) {}
  std::unique_ptr<JobControl> control(int rank) override {
    const Store store = job_.rank(rank);
    return std::make_unique<StoreControl>(store);
  }

 private:
  StoreJob job_;
};

struct Implementation {
  const char* name;
  std::function<std::unique_ptr<Job>(int size)> make;
};

/// Records what a listener receives.
class Heard {
 public:
  JobControl::Listener listener() {
    return {.on_message =
                [this](int from, std::string message) {
                  const std::lock_guard lock(mutex_);
                  messages_.push_back(std::to_string(from) + ": " + message);
                  changed_.notify_all();
                },
            .on_failure =
                [this](const Failure& failure) {
                  const std::lock_guard lock(mutex_);
                  failures_.push_back(std::to_string(failure.rank) + ": " + failure.text);
                  changed_.notify_all();
                }};
  }
  std::vector<std::string> messages(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, milliseconds(10'000), [&] { return messages_.size() >= count; }));
    return messages_;
  }
  std::string failure() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, milliseconds(10'000), [&] { return !failures_.empty(); }));
    return failures_.empty() ? "" : failures_[0];
  }
  size_t failures() {
    const std::lock_guard lock(mutex_);
    return failures_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> messages_;
  std::vector<std::string> failures_;
};

class JobControlTest : public ::testing::TestWithParam<Implementation> {
 protected:
  Controls start(int size) {
    job_ = GetParam().make(size);
    Controls controls;
    for (int rank = 0; rank < size; ++rank) controls.push_back(job_->control(rank));
    return controls;
  }
  static void all_leave(const Controls& controls) {
    for (const auto& control : controls) control->leave();
  }
  static Failure wait_for_failure(const JobControl& control) {
    for (int i = 0; i < 10'000; ++i) {
      if (const auto failure = control.failure()) return *failure;
      std::this_thread::sleep_for(milliseconds(1));
    }
    ADD_FAILURE() << "no failure came to rank " << control.rank();
    return {};
  }

  std::unique_ptr<Job> job_;
};

TEST_P(JobControlTest, EachRankKnowsItsPlace) {
  const Controls controls = start(3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(controls[static_cast<size_t>(rank)]->rank(), rank);
    EXPECT_EQ(controls[static_cast<size_t>(rank)]->size(), 3);
    EXPECT_FALSE(controls[static_cast<size_t>(rank)]->failure());
  }
  all_leave(controls);
}

TEST_P(JobControlTest, TextsArriveInOrderAtTheRankTheyAreFor) {
  const Controls controls = start(3);
  Heard heard[3];
  for (size_t rank = 0; rank < 3; ++rank) controls[rank]->listen(heard[rank].listener());
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    controls[0]->post(2, std::to_string(i));
    expected.push_back("0: " + std::to_string(i));
  }
  EXPECT_EQ(heard[2].messages(100), expected);
  controls[1]->post(1, "to itself");
  controls[2]->post(0, "");
  EXPECT_THAT(heard[1].messages(1), ElementsAre("1: to itself"));
  EXPECT_THAT(heard[0].messages(1), ElementsAre("2: "));
  all_leave(controls);
}

TEST_P(JobControlTest, TextsForARankThatDoesNotListenYetWait) {
  job_ = GetParam().make(2);
  const auto first = job_->control(0);
  first->post(1, "before it came");
  first->post(0, "to itself");
  Heard own;
  first->listen(own.listener());
  EXPECT_THAT(own.messages(1), ElementsAre("0: to itself"));

  const auto second = job_->control(1);
  Heard heard;
  second->listen(heard.listener());
  EXPECT_THAT(heard.messages(1), ElementsAre("0: before it came"));
  second->listen({});
  first->post(1, "before it listens");
  second->listen(heard.listener());
  EXPECT_THAT(heard.messages(2), ElementsAre("0: before it came", "0: before it listens"));
  first->leave();
  second->leave();
}

TEST_P(JobControlTest, ARankThatComesAfterTheFailureKnowsIt) {
  job_ = GetParam().make(2);
  const auto first = job_->control(0);
  first->fail("early");
  EXPECT_EQ(wait_for_failure(*first).text, "early");
  const auto second = job_->control(1);
  EXPECT_EQ(wait_for_failure(*second).text, "early");
}

TEST_P(JobControlTest, TextsToNobodyAreDropped) {
  const Controls controls = start(2);
  controls[1]->leave();
  for (const int to : {-1, 2, 1'000'000, 1}) controls[0]->post(to, "anybody?");
  Heard heard;
  controls[0]->listen(heard.listener());
  controls[0]->post(0, "still here");
  EXPECT_THAT(heard.messages(1), ElementsAre("0: still here"));
  controls[0]->leave();
}

TEST_P(JobControlTest, AFailureReachesAllRanksItsOwnAmongThem) {
  const Controls controls = start(4);
  Heard heard[4];
  for (size_t rank = 0; rank < 4; ++rank) controls[rank]->listen(heard[rank].listener());
  const auto start = std::chrono::steady_clock::now();
  controls[2]->fail("the loader threw");
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(heard[rank].failure(), "2: the loader threw");
    const Failure failure = controls[rank]->failure().value();
    EXPECT_EQ(failure.rank, 2);
    EXPECT_EQ(failure.text, "the loader threw");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(8000));
}

TEST_P(JobControlTest, OfFailuresAtOnceAllRanksKeepTheSameOne) {
  constexpr int kRanks = 5;
  const Controls controls = start(kRanks);
  std::vector<std::thread> threads;
  for (const auto& control : controls) {
    threads.emplace_back([&control] { control->fail("of " + std::to_string(control->rank())); });
  }
  for (std::thread& thread : threads) thread.join();
  const Failure first = wait_for_failure(*controls[0]);
  EXPECT_EQ(first.text, "of " + std::to_string(first.rank));
  for (const auto& control : controls) {
    EXPECT_EQ(wait_for_failure(*control).text, first.text);
    control->fail("later");
  }
  std::this_thread::sleep_for(milliseconds(20));
  for (const auto& control : controls) EXPECT_EQ(control->failure()->text, first.text);
}

TEST_P(JobControlTest, EachListenerIsToldTheFailureOnce) {
  const Controls controls = start(2);
  controls[1]->fail("early");
  (void)wait_for_failure(*controls[0]);
  Heard first;
  controls[0]->listen(first.listener());
  EXPECT_EQ(first.failure(), "1: early");
  Heard second;
  controls[0]->listen(second.listener());
  EXPECT_EQ(second.failure(), "1: early");
  controls[0]->post(0, "after");
  (void)second.messages(1);
  EXPECT_EQ(first.failures(), 1U);
  EXPECT_EQ(second.failures(), 1U);
}

TEST_P(JobControlTest, ARankThatLeavesIsNoFailure) {
  Controls controls = start(3);
  controls[1]->leave();
  controls[1]->leave();
  controls[1].reset();
  controls[0]->post(0, "goes on");
  Heard heard;
  controls[0]->listen(heard.listener());
  EXPECT_THAT(heard.messages(1), ElementsAre("0: goes on"));
  controls[2]->post(0, "all well");
  EXPECT_THAT(heard.messages(2), ElementsAre("0: goes on", "2: all well"));
  EXPECT_EQ(heard.failures(), 0U);
  controls[0]->leave();
  controls[2]->leave();
}

TEST_P(JobControlTest, ARankThatEndsWithoutLeavingIsTheFailure) {
  Controls controls = start(3);
  controls[1].reset();
  for (const size_t rank : {0, 2}) {
    const Failure failure = wait_for_failure(*controls[rank]);
    EXPECT_EQ(failure.rank, 1);
    EXPECT_THAT(failure.text, HasSubstr("rank 1"));
    EXPECT_THAT(failure.text, HasSubstr("ended without leaving"));
  }
}

TEST_P(JobControlTest, WhatARankSaysLastArrivesBeforeItsEnd) {
  for (int round = 0; round < 10; ++round) {
    Controls controls = start(2);
    Heard heard;
    controls[0]->listen(heard.listener());
    controls[1]->post(0, "last words");
    controls[1]->fail("bad batch");
    controls[1].reset();
    EXPECT_THAT(heard.messages(1), ElementsAre("1: last words"));
    EXPECT_EQ(heard.failure(), "1: bad batch");
    controls[0]->leave();
  }
}

TEST_P(JobControlTest, NoListenerIsCalledAfterItHasEnded) {
  const Controls controls = start(2);
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop) {
      controls[1]->post(0, "x");
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> calls = 0;
    auto listening = std::make_unique<bool>(true);
    controls[0]->listen({.on_message =
                             [&](int, const std::string&) {
                               EXPECT_TRUE(*listening);
                               ++calls;
                             },
                         .on_failure = nullptr});
    if (round % 2 == 0) {
      while (calls == 0) std::this_thread::yield();
    }
    controls[0]->listen({});
    listening.reset();
    const int before = calls;
    std::this_thread::yield();
    EXPECT_EQ(calls, before);
  }
  stop = true;
  sender.join();
  all_leave(controls);
}

TEST_P(JobControlTest, AListenerMayAnswerFailAndEndItself) {
  const Controls controls = start(2);
  Heard heard;
  controls[0]->listen(heard.listener());
  controls[1]->listen({.on_message =
                           [&](int from, const std::string& message) {
                             controls[1]->post(from, "re: " + message);
                             controls[1]->fail("asked to");
                             controls[1]->listen({});
                           },
                       .on_failure = [](const Failure&) { ADD_FAILURE() << "it had ended"; }});
  controls[0]->post(1, "well?");
  EXPECT_THAT(heard.messages(1), ElementsAre("1: re: well?"));
  EXPECT_EQ(heard.failure(), "1: asked to");
}

TEST_P(JobControlTest, ManyRanksPostToEachOtherAtOnce) {
  constexpr int kRanks = 6;
  constexpr int kTexts = 50;
  const Controls controls = start(kRanks);
  Heard heard[kRanks];
  for (size_t rank = 0; rank < kRanks; ++rank) controls[rank]->listen(heard[rank].listener());
  std::vector<std::thread> threads;
  for (const auto& control : controls) {
    threads.emplace_back([&control] {
      for (int i = 0; i < kTexts; ++i) {
        for (int to = 0; to < kRanks; ++to) control->post(to, std::to_string(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Heard& one : heard) {
    int next[kRanks] = {};
    for (const std::string& text : one.messages(kRanks * kTexts)) {
      EXPECT_EQ(text.substr(3), std::to_string(next[text[0] - '0']++));
    }
  }
  all_leave(controls);
}

INSTANTIATE_TEST_SUITE_P(
    Implementations, JobControlTest,
    ::testing::Values(
        Implementation{"InThreads", [](int size) { return std::make_unique<InThreads>(size); }},
        Implementation{"OverAStore", [](int size) { return std::make_unique<OverAStore>(size); }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lockstep::dist
