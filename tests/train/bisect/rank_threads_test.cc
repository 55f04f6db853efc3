#include "train/bisect/rank_threads.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/ops/factory/factory.h"
#include "dist/group/transport_group.h"
#include "tests/core/expect_error.h"

namespace lockstep::train {
namespace {

TEST(RankThreads, DoTogetherWhatTheyAreGiven) {
  RankThreads ranks(3, kCPU);
  std::vector<std::thread::id> first(3), second(3);
  std::vector<double> sums(3);
  ranks.run([&](int rank, dist::ProcessGroup* group) {
    const auto number = static_cast<size_t>(rank);
    EXPECT_EQ(group->rank(), rank);
    EXPECT_EQ(group->size(), 3);
    first[number] = std::this_thread::get_id();
    const Tensor value = full({1}, rank + 1.0, {DType::kF64, kCPU});
    group->all_reduce(value).wait();
    sums[number] = *value.data<double>();
  });
  EXPECT_EQ(sums, std::vector<double>(3, 6));
  ranks.run([&](int rank, dist::ProcessGroup*) {
    second[static_cast<size_t>(rank)] = std::this_thread::get_id();
  });
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[0], std::this_thread::get_id());
}

TEST(RankThreads, OneIsTheCallersThreadWithoutAGroup) {
  RankThreads ranks(1, kCPU);
  int calls = 0;
  ranks.run([&](int rank, dist::ProcessGroup* group) {
    EXPECT_EQ(rank, 0);
    EXPECT_EQ(group, nullptr);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(RankThreads, WhatTheFirstToFailThrowsReachesTheCaller) {
  RankThreads ranks(3, kCPU);
  expect_error<DataError>(
      [&] {
        ranks.run([](int rank, dist::ProcessGroup* group) {
          if (rank == 1) throw DataError("[shards] broken");
          group->barrier().wait();  // never comes, and does not wait for ever
        });
      },
      "[shards] broken");
  EXPECT_THROW(ranks.run([](int, dist::ProcessGroup* group) { group->barrier().wait(); }),
               DistError);
  int calls = 0;
  ranks.run([&](int rank, dist::ProcessGroup*) { calls += rank == 0 ? 1 : 0; });
  EXPECT_EQ(calls, 1) << "an earlier failure is not told again";
}

TEST(RankThreads, AreOnTheHostsThatAreNamed) {
  RankThreads ranks(3, kCPU, {0, 1, 1});
  ranks.run([](int, dist::ProcessGroup* group) {
    EXPECT_EQ(dist::hosts_of(*group), (std::vector<int>{0, 1, 1}));
  });
}

}  // namespace
}  // namespace lockstep::train
