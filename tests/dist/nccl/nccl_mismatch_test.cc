// Calls that differ between ranks of a group over NCCL are found by the background comparison, long
// before the group's timeout.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "dist/nccl/nccl_comparison.h"
#include "dist/nccl/nccl_group.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

/// Expects every rank to fail with a MismatchError whose message contains `parts`. The groups have
/// a timeout of 10 minutes, more than the test has.
template <class... Parts>
void expect_mismatch(int size, const std::function<void(NcclGroup&)>& body, const Parts&... parts) {
  FakeNccl fake;
  const auto errors = run_nccl_ranks(fake, {.size = size}, [&](NcclGroup& group) {
    group.set_timeout(10min);
    body(group);
    group.barrier().synchronize();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error) << "a rank did not fail";
    expect_error<MismatchError>([&] { std::rethrow_exception(error); }, parts...);
  }
  EXPECT_EQ(fake.alive(), 0);
}

TEST(NcclMismatch, OfCountsNamesBothCallsOnAllRanks) {
  expect_mismatch(
      2,
      [](NcclGroup& group) {
        group.all_reduce(host_ones(4)).synchronize();
        group.all_reduce(host_ones(10 + group.rank())).synchronize();
      },
      "operation #1 of group world", "rank 0 called all_reduce #1 of 10 float32, sum",
      "rank 1 called all_reduce #1 of 11 float32, sum");
}

TEST(NcclMismatch, OfDtypesIsFound) {
  expect_mismatch(
      2,
      [](NcclGroup& group) {
        const DType dtype = group.rank() == 0 ? DType::kF32 : DType::kI32;
        group.all_reduce(host_ones(8, dtype)).synchronize();
      },
      "rank 0 called all_reduce #0 of 8 float32", "rank 1 called all_reduce #0 of 8 int32");
}

TEST(NcclMismatch, OfReductionsIsFoundAmongThreeRanks) {
  expect_mismatch(
      3,
      [](NcclGroup& group) {
        group.all_reduce(host_ones(8), {group.rank() == 1 ? ReduceOp::kMax : ReduceOp::kMin})
            .synchronize();
      },
      "rank 1 called all_reduce #0 of 8 float32, max", "called all_reduce #0 of 8 float32, min");
}

TEST(NcclMismatch, OfTheOrderOfTwoOperationsIsFound) {
  expect_mismatch(
      2,
      [](NcclGroup& group) {
        const Tensor tensor = host_ones(6);
        if (group.rank() == 0) {
          const Work first = group.all_reduce(tensor);
          group.broadcast(tensor, 0).synchronize();
        } else {
          const Work first = group.broadcast(tensor, 0);
          group.all_reduce(tensor).synchronize();
        }
      },
      "rank 0 called all_reduce #0", "rank 1 called broadcast #0");
}

TEST(NcclMismatch, InASubgroupNamesItsOperation) {
  expect_mismatch(
      3,
      [](NcclGroup& group) {
        const auto pair = group.subgroup({0, 2}, "pair");
        if (pair) {
          pair->set_timeout(10min);
          pair->all_reduce(host_ones(group.rank() == 0 ? 3 : 5)).synchronize();
        }
      },
      "of group pair", "rank 0 called all_reduce #0 of 3", "rank 2 called all_reduce #0 of 5");
}

TEST(NcclMismatch, OfARankThatComesLateIsFoundWhenItCame) {
  expect_mismatch(
      2,
      [](NcclGroup& group) {
        if (group.rank() == 1) std::this_thread::sleep_for(1500ms);
        group.all_reduce(host_ones(10 + group.rank())).synchronize();
      },
      "rank 0 called all_reduce #0 of 10", "rank 1 called all_reduce #0 of 11");
}

TEST(NcclMismatch, OfCallsThatBlockInNcclIsFound) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.set_timeout(10min);
    group.all_reduce(host_ones(4)).synchronize();
    if (++came == 2) fake.hold_start(true);
    while (came < 2 && !testing::Test::HasFailure()) std::this_thread::yield();
    // With the communicator in progress, these calls are not launched.
    group.all_reduce(host_ones(10 + group.rank())).synchronize();
  });
  fake.hold_start(false);
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error) << "a rank did not fail";
    expect_error<MismatchError>([&] { std::rethrow_exception(error); },
                                "rank 0 called all_reduce #1 of 10", "rank 1 called all_reduce #1");
  }
}

TEST(NcclMismatch, IsNotSeenInARankThatIsTwoSecondsLate) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    group.set_timeout(10min);
    group.all_reduce(host_ones(4)).synchronize();
    if (group.rank() == 1) std::this_thread::sleep_for(2s);
    const Tensor tensor = host_ones(8);
    group.all_reduce(tensor).synchronize();
    EXPECT_EQ(tensor.to(kCPU).data<float>()[0], 3);
  });
  EXPECT_EQ(fake.count("ncclCommAbort"), 0);
}

TEST(NcclMismatch, IsNotSeenInEqualOperationsThatTakeSeconds) {
  FakeNccl fake;
  fake.hold_operations(true);
  std::thread release([&] {
    std::this_thread::sleep_for(2s);
    fake.hold_operations(false);
  });
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    group.set_timeout(10min);
    const Tensor tensor = host_ones(8);
    group.all_reduce(tensor);
    group.broadcast(tensor, 1);
    group.barrier().synchronize();
  });
  release.join();
  EXPECT_EQ(fake.count("ncclCommAbort"), 0);
}

TEST(RanksToCompare, AreAllOthersInSmallGroupsAndFewInLargeOnes) {
  EXPECT_THAT(ranks_to_compare(0, 1), testing::IsEmpty());
  EXPECT_THAT(ranks_to_compare(2, 4), testing::ElementsAre(3, 0, 1));
  EXPECT_THAT(ranks_to_compare(0, 100), testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64));
  const std::vector<int> ranks = ranks_to_compare(4000, 4096);
  EXPECT_LT(ranks.size(), 20u);
  EXPECT_EQ(std::set<int>(ranks.begin(), ranks.end()).size(), ranks.size());
  EXPECT_EQ(std::ranges::count(ranks, 4000), 0);
}

}  // namespace
}  // namespace lockstep::dist
