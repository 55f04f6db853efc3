// Groups of some ranks of a job, whose numbers there are other ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/dist/group/communicator_ranks.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Subgroup, ATimeoutNamesItsRanksAndWhereTheyAre) {
  std::atomic<bool> over = false;
  const auto errors = run_thread_ranks(4, [&](ProcessGroup& world) {
    // Its rank 0 is the job's rank 3, its rank 1 the job's rank 2.
    const auto pair = world.subgroup({3, 2}, "pair");
    if (!pair) return;
    pair->barrier().wait();
    while (pair->rank() == 1 && !over) std::this_thread::sleep_for(1ms);
    try {
      pair->all_reduce(cpu_ones(64), {}, {.timeout = 600ms}).wait();
    } catch (...) {
      over = true;
      throw;
    }
  });
  EXPECT_EQ(text_of(errors[3]),
            "[all_reduce] all_reduce #1 of 64 float32, sum in group pair did not end within 0.6 "
            "s; rank 1 has not come to it: the last it called is #0. Its time is set with the "
            "group's timeout.");
}

TEST(Subgroup, HasTheHostsOfItsRanksAndTheTimeoutOfItsGroup) {
  const std::vector<int> hosts = {0, 0, 1, 1};
  expect_none(run_thread_ranks(
      4,
      [](ProcessGroup& world) {
        world.set_timeout(1234567ms);
        const auto middle = world.subgroup({1, 2}, "middle");
        const auto last = world.subgroup({3, 2}, "last");
        if (middle) {
          EXPECT_THAT(hosts_of(*middle), ElementsAre(0, 1));
          EXPECT_EQ(middle->timeout(), 1234567ms);
        }
        if (last) {
          EXPECT_THAT(hosts_of(*last), ElementsAre(0, 0));
          EXPECT_EQ(last->timeout(), 1234567ms);
        }
      },
      {}, hosts));
}

TEST(Subgroup, IsToldFromAnotherOfTheSameRanksAndName) {
  const auto rank_0 = all_communicators(2, [](ProcessGroup& world, Communicator&) {
    const auto first = world.subgroup({1, 0}, "pair");
    const auto second = world.subgroup({1, 0}, "pair");
    first->barrier().wait();
    second->barrier().wait();
  });
  const std::vector<FlightGroup> groups = rank_0->recorder().groups();
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[1].name, "pair");
  EXPECT_EQ(groups[2].name, "pair");
  EXPECT_NE(groups[1].id, groups[2].id);
}

}  // namespace
}  // namespace lockstep::dist
