#include "dist/rendezvous/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_message.h"
#include "tests/core/expect_error.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> keys(std::initializer_list<const char*> names) {
  return {names.begin(), names.end()};
}

TEST(Store, WhatOneRankSetsAllGet) {
  const StoreJob job(4);
  job.on_ranks([](Store& store) {
    EXPECT_EQ(store.world_size(), 4);
    if (store.rank() == 2) store.set("id", "of rank 2");
    EXPECT_EQ(store.get("id"), "of rank 2");
  });
}

TEST(Store, ARankWithoutANumberGetsTheNextThatIsFreeButNotTheServers) {
  const StoreJob job(4);
  const Store second = job.rank(2);
  const Store first = job.rank(kAnyRank);
  const Store third = job.rank(kAnyRank);
  EXPECT_EQ(first.rank(), 1);
  EXPECT_EQ(third.rank(), 3);
  expect_error<DistError>([&] { (void)job.rank(kAnyRank); },
                          "asks for a number, but all 4 ranks have come");
  const Store server = job.rank(0);
  server.join();
}

TEST(Store, GetWaitsUntilTheKeyIsSet) {
  const StoreJob job(2);
  Store early = job.rank(0);
  auto value = std::async(std::launch::async, [&] { return early.get("late"); });
  EXPECT_EQ(value.wait_for(milliseconds(30)), std::future_status::timeout);
  job.rank(1).set("late", "now");
  EXPECT_EQ(value.get(), "now");
}

TEST(Store, ValuesAreAnyBytesOfAnyLengthUpToTheLargest) {
  const StoreJob job(1);
  Store store = job.rank(0);
  std::string all_bytes(256, '\0');
  std::iota(all_bytes.begin(), all_bytes.end(), '\0');
  for (const std::string& value :
       {std::string(), all_bytes, std::string(70'000, 'x'), std::string((16 << 20) - 1, 'y')}) {
    store.set("k", value);
    EXPECT_TRUE(store.get("k") == value) << value.size();
  }
  store.set("", "of the empty key");
  EXPECT_EQ(store.get(""), "of the empty key");
  expect_error<DistError>([&] { store.set("k", std::string(16 << 20, 'z')); }, "small values");
  EXPECT_EQ(store.get("").size(), 16U);  // the connection still works
}

TEST(Store, EveryAddOfAllRanksCountsOnce) {
  constexpr int kRanks = 6;
  constexpr int kAdds = 100;
  const StoreJob job(kRanks);
  std::mutex mutex;
  std::set<int64_t> sums;
  job.on_ranks([&](Store& store) {
    for (int i = 0; i < kAdds; ++i) {
      const int64_t sum = store.add("n", 1);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(sums.insert(sum).second) << sum;
    }
  });
  EXPECT_EQ(sums.size(), size_t{kRanks * kAdds});
  EXPECT_EQ(*sums.begin(), 1);
  EXPECT_EQ(*sums.rbegin(), kRanks * kAdds);
  // All ranks have disconnected without leaving.
  StoreOptions options = job.options(0);
  expect_error<DistError>([&] { Store store(options); }, "lost");
}

TEST(Store, ExactlyOneRankWinsACompareSet) {
  const StoreJob job(5);
  std::atomic<int> winners = 0;
  job.on_ranks([&](Store& store) {
    const std::string own = std::to_string(store.rank());
    const std::string value = store.compare_set("leader", "", own);
    if (value == own) ++winners;
    EXPECT_EQ(store.get("leader"), value);
    EXPECT_EQ(store.compare_set("leader", "nobody", own), value);
    store.barrier("done");
  });
  EXPECT_EQ(winners, 1);
}

TEST(Store, CheckWaitAndEraseAgreeOnWhatIsThere) {
  const StoreJob job(1);
  Store store = job.rank(0);
  EXPECT_FALSE(store.check(keys({"a", "b"})));
  store.set("a", "1");
  EXPECT_FALSE(store.check(keys({"a", "b"})));
  store.set("b", "2");
  EXPECT_TRUE(store.check(keys({"a", "b"})));
  EXPECT_TRUE(store.check({}));
  store.wait(keys({"a", "b"}), milliseconds(0));
  store.wait({}, milliseconds(0));
  EXPECT_TRUE(store.erase("a"));
  EXPECT_FALSE(store.erase("a"));
  EXPECT_FALSE(store.check(keys({"a"})));
  expect_error<TimeoutError>(
      [&] {
        store.wait(keys({"a", "b"}), milliseconds(10));
      },
      "nobody set \"a\" within 0.01 s");
}

TEST(Store, ATimeoutNamesKeyAndRanksThatNeverConnected) {
  const StoreJob job(4);
  const Store store = job.rank(1);
  const auto start = Clock::now();
  expect_error<TimeoutError>([&] { (void)store.get("nccl/0", milliseconds(50)); },
                             "nobody set \"nccl/0\" within 0.05 s",
                             "Never connected: ranks 0, 2, 3.");
  EXPECT_GE(Clock::now() - start, milliseconds(50));
  expect_error<TimeoutError>([&] { store.join(milliseconds(20)); }, "not all 4 ranks joined",
                             "Never connected: ranks 0, 2, 3.");
}

TEST(Store, ABarrierHoldsAllUntilTheLastComesAndCanBeUsedAgain) {
  constexpr int kRanks = 5;
  const StoreJob job(kRanks);
  std::atomic<int> came = 0;
  job.on_ranks([&](Store& store) {
    store.join();
    for (int round = 1; round <= 20; ++round) {
      ++came;
      store.barrier("again");
      EXPECT_GE(came, round * kRanks);
      store.barrier("between");
    }
  });
}

TEST(Store, ABarrierThatTimesOutNamesTheRankThatHasNotCome) {
  const StoreJob job(2);
  Store here = job.rank(0);
  const Store elsewhere = job.rank(1);
  expect_error<TimeoutError>([&] { here.barrier("epoch 3", milliseconds(30)); },
                             "barrier \"epoch 3\": 1 of 2 ranks came", "rank 1 (host ",
                             ") is connected but has not come");
}

TEST(Store, OperationsOfSeveralThreadsAreUnderWaySideBySide) {
  const StoreJob job(1);
  Store store = job.rank(0);
  std::vector<std::future<std::string>> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(
        std::async(std::launch::async, [&, i] { return store.get(std::to_string(i)); }));
  }
  for (int i = 7; i >= 0; --i) store.set(std::to_string(i), "value " + std::to_string(i));
  for (size_t i = 0; i < waiting.size(); ++i) {
    EXPECT_EQ(waiting[i].get(), "value " + std::to_string(i));
  }
}

/// Each rank's own keys behave like a map; a shared counter and keys that other ranks wait for lose
/// no update.
RC_GTEST_PROP(Store, ConcurrentRanksSeeOneOrder, ()) {
  constexpr int kRanks = 3;
  static const StoreJob job(kRanks);
  static std::vector<Store> stores = [] {
    std::vector<Store> all;
    for (int rank = 0; rank < kRanks; ++rank) all.push_back(job.rank(rank));
    return all;
  }();
  static int cases = 0;
  const std::string prefix = std::to_string(cases++) + "/";
  const auto plan_of_one =
      rc::gen::resize(5, rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12)));
  const auto plans =
      *rc::gen::container<std::vector<std::vector<int>>>(size_t{kRanks}, plan_of_one);
  int64_t adds = 0;
  for (const auto& plan : plans) adds += std::ranges::count_if(plan, [](int n) { return n < 4; });
  std::atomic<bool> well = true;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Store& store = stores[static_cast<size_t>(rank)];
      const std::string mine = prefix + std::to_string(rank) + "/";
      std::map<std::string, std::string> model;
      int64_t last = 0;
      for (const int step : plans[static_cast<size_t>(rank)]) {
        const std::string key = mine + std::to_string(step % 3);
        if (step < 4) {
          const int64_t sum = store.add(prefix + "sum", 1);
          if (sum <= last) well = false;
          last = sum;
        } else if (step < 8) {
          model[key] = std::to_string(model.size());
          store.set(key, model[key]);
        } else if (model.contains(key) && store.get(key) != model[key]) {
          well = false;
        }
      }
      store.set(mine + "done", "yes");
      for (int other = 0; other < kRanks; ++other) {
        if (store.get(prefix + std::to_string(other) + "/done") != "yes") well = false;
      }
      if (store.add(prefix + "sum", 0) != adds) well = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  RC_ASSERT(well);
}

TEST(Store, TheServerMayStartAfterTheRanks) {
  const std::string address = StoreJob(1).address();
  auto early = std::async(std::launch::async, [&] {
    Store store(StoreJob::rank_options(0, 1, address));
    store.set("k", "v");
    return store.get("k");
  });
  std::this_thread::sleep_for(milliseconds(100));
  const StoreJob job(1, address);
  EXPECT_EQ(early.get(), "v");
}

TEST(Store, WithoutAServerTheJoinTimeoutSaysWhereAndWhy) {
  StoreOptions options = StoreJob::rank_options(3, 4, StoreJob(1).address());
  options.join_timeout = milliseconds(60);
  expect_error<TimeoutError>([&] { Store store(options); }, "rank 3 did not reach the store at",
                             options.address, "within 0.06 s: Connection refused");
  options.address = "no such host here:1";
  expect_error<UnknownHost>([&] { Store store(options); }, "no such host here:1",
                            "does not resolve");
  options.address = "nowhere";
  expect_error<DistError>([&] { Store store(options); }, "HOST:PORT");
  options.rank = 4;
  expect_error<DistError>([&] { Store store(options); }, "no rank 4 in a world of 4");
}

TEST(Store, AnOperationUnderWayEndsWithTheServer) {
  StoreJob job(2);
  Store store = job.rank(1);
  auto value = std::async(std::launch::async, [&] { return store.get("never"); });
  EXPECT_EQ(value.wait_for(milliseconds(20)), std::future_status::timeout);
  job.stop();
  expect_error<PeerLostError>([&] { (void)value.get(); }, "rank 0");
  expect_error<PeerLostError>([&] { store.set("k", "v"); }, "stopped it");
}

TEST(StoreServer, WaitsUntilAllRanksHaveLeft) {
  StoreJob job(2);
  EXPECT_FALSE(job.server().wait_until_left(milliseconds(5)));
  const Store first = job.rank(0);
  const Store second = job.rank(1);
  first.connection()->leave();
  EXPECT_FALSE(job.server().wait_until_left(milliseconds(5)));
  second.connection()->leave();
  EXPECT_TRUE(job.server().wait_until_left(milliseconds(10'000)));
  expect_error<DistError>([&] { (void)first.check(keys({"k"})); }, "rank 0 has left");
}

TEST(StoreServer, ARankThatLeftMayComeBack) {
  const StoreJob job(1);
  for (int i = 1; i <= 3; ++i) {
    Store store = job.rank(0);
    EXPECT_EQ(store.add("times", 1), i);
    store.connection()->leave();
  }
}

TEST(StoreServer, OptionsThatCannotBeRightAreRefused) {
  StoreServerOptions options = StoreJob::server_options(2);
  options.rank = 2;
  expect_error<DistError>([&] { StoreServer server(options); }, "rank 2 in a world of 2");
  options.rank = -1;
  options.silence = milliseconds(999);
  expect_error<DistError>([&] { StoreServer server(options); }, "999 ms");
  options.silence = milliseconds(1000);
  options.address = "127.0.0.1:port";
  expect_error<DistError>([&] { StoreServer server(options); }, "127.0.0.1:port");
  const StoreJob job(1);
  expect_error<AddressInUse>([&] { StoreJob other(1, job.address()); }, job.address(), "in use");
}

TEST(StoreServer, SleepsWhileNothingHappens) {
  const StoreJob job(2);
  const Store first = job.rank(0);
  const Store second = job.rank(1);
  const auto cpu_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  };
  const double before = cpu_seconds();
  expect_error<TimeoutError>([&] { (void)first.get("never", milliseconds(250)); }, "never");
  EXPECT_LT(cpu_seconds() - before, 0.1);
}

}  // namespace
}  // namespace lockstep::dist
