// What finds ranks that cannot connect, values that are wrong, and a watch that hangs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <thread>
#include <vector>

#include "core/device/spared_processors.h"
#include "core/ops/factory/factory.h"
#include "dist/nccl/nccl_group.h"
#include "dist/nccl/nccl_watch.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(NcclConnect, SumsSmallAndLargeAtTheStart) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.options.connect_at_start = true;
  all_nccl_ranks(fake, job, [](NcclGroup&) {});
  std::vector<size_t> counts;
  for (const FakeNccl::Call& call : fake.calls()) {
    if (call.rank == 0) counts.push_back(call.count);
  }
  EXPECT_EQ(counts, (std::vector<size_t>{1, size_t{4} << 20}));
}

TEST(NcclConnect, WhatKeepsARankFromItIsAnErrorOfTheStart) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.options.connect_at_start = true;
  job.options.start_timeout = 1s;
  fake.hold_launches(true);
  const auto errors = run_nccl_ranks(
      fake, job, [&](NcclGroup&) { ADD_FAILURE() << "the ranks are not connected"; });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>([&] { std::rethrow_exception(error); },
                               "NCCL did not get ready within the time limit");
  }
}

TEST(NcclStartOfManyRanks, TakesAnIdentifierForEachFew) {
  FakeNccl fake;
  FakeNcclJob job{.size = 5};
  job.options.ranks_of_an_id = 2;
  all_nccl_ranks(fake, job, [](NcclGroup& group) {
    const Tensor tensor = host_ones(3);
    group.all_reduce(tensor).synchronize();
    EXPECT_EQ(tensor.to(kCPU).data<float>()[0], 5);
  });
  EXPECT_EQ(fake.count("ncclGetUniqueId"), 3) << "of ranks 0, 2 and 4";
  EXPECT_EQ(fake.count("ncclCommInitRankScalable"), 5);
}

TEST(NcclStartOfManyRanks, TakesOneWhereTheLibraryHasNoUseForMore) {
  FakeNccl fake;
  fake.missing = {"ncclCommInitRankScalable"};
  FakeNcclJob job{.size = 3};
  job.options.ranks_of_an_id = 1;
  all_nccl_ranks(fake, job, [](NcclGroup& group) { group.barrier().synchronize(); });
  EXPECT_EQ(fake.count("ncclGetUniqueId"), 1);
  EXPECT_EQ(fake.count("ncclCommInitRankConfig"), 3);
}

TEST(NcclValueCheck, NamesTheRankThatGivesNan) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.options.check_values = true;
  const auto errors = run_nccl_ranks(fake, job, [&](NcclGroup& group) {
    const Tensor good = host_ones(8);
    group.all_reduce(good).synchronize();
    // What is received into is not looked at.
    const Tensor gathered = host_ones(16).fill_(std::numeric_limits<double>::quiet_NaN());
    group.all_gather(gathered, good).synchronize();
    const Tensor bad = host_ones(8);
    if (group.rank() == 1) bad.fill_(std::numeric_limits<double>::quiet_NaN());
    group.all_reduce(bad).synchronize();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<DistError>([&] { std::rethrow_exception(error); },
                            "[all_reduce] rank 1 gives NaN to group world");
  }
}

TEST(NcclValueCheck, IsOffUnlessItIsAskedFor) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.all_reduce(host_ones(8).fill_(std::numeric_limits<double>::quiet_NaN())).synchronize();
  });
}

TEST(NcclSparedProcessors, AreSparedFromTheStartOfAGroupOfSeveralRanksOn) {
  for (const int size : {1, 2}) {
    const FakeNccl fake;
    FakeNcclJob job{.size = size};
    job.options.spared_processors = 8;
    all_nccl_ranks(fake, job,
                   [&](NcclGroup&) { EXPECT_EQ(spared_processors(), size > 1 ? 8 : 0); });
  }
  spare_processors(0);
}

TEST(NcclHeartbeat, AWatchThatHangsFailsTheJobAndIsNamed) {
  auto communicators = thread_communicators(1);
  const std::shared_ptr<Communicator> communicator = std::move(communicators[0]);
  NcclHeartbeat heartbeat(communicator, 200ms);
  std::atomic<bool> hangs = true;
  NcclWatch watch(communicator,
                  {.advance =
                       [&] {
                         while (hangs) std::this_thread::sleep_for(1ms);
                         return false;
                       },
                   .waits = [] { return false; },
                   .fail = [](const std::exception_ptr&) { return std::vector<NcclQueued>(); }},
                  heartbeat.add("world"));
  while (communicator->failure() == nullptr) std::this_thread::sleep_for(1ms);
  expect_error<BackendError>([&] { std::rethrow_exception(communicator->failure()); },
                             "the watch of group world on rank 0 has hung for 0.2 s");
  hangs = false;
}

TEST(NcclHeartbeat, HearsWatchesThatAreIdle) {
  auto communicators = thread_communicators(1);
  const std::shared_ptr<Communicator> communicator = std::move(communicators[0]);
  NcclHeartbeat heartbeat(communicator, 5s);
  std::atomic<int> rounds = 0;
  const std::shared_ptr<NcclPulse> pulse = heartbeat.add("world");
  {
    NcclWatch watch(communicator,
                    {.advance =
                         [&] {
                           ++rounds;
                           return false;
                         },
                     .waits = [] { return false; },
                     .fail = [](const std::exception_ptr&) { return std::vector<NcclQueued>(); }},
                    pulse);
    while (rounds < 4) std::this_thread::sleep_for(1ms);
    EXPECT_LT(pulse->silence(), 5s);
  }
  EXPECT_EQ(pulse->silence(), 0ns) << "one that has ended is to say nothing";
  EXPECT_EQ(communicator->failure(), nullptr);
}

}  // namespace
}  // namespace lockstep::dist
