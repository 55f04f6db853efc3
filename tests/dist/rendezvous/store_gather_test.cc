#include "dist/rendezvous/store_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

TEST(StoreGather, ReturnsTheTextsInTheOrderOfRanksAgainAndAgain) {
  const StoreJob job(3);
  job.on_ranks([](Store& store) {
    StoreGather gather(store, "a");
    StoreGather other(store, "b");
    const std::string own(static_cast<size_t>(store.rank()), 'x');
    EXPECT_EQ(gather(own), (std::vector<std::string>{"", "x", "xx"}));
    EXPECT_EQ(other("b"), (std::vector<std::string>{"b", "b", "b"}));
    EXPECT_EQ(gather(own + "\n"), (std::vector<std::string>{"\n", "x\n", "xx\n"}));
  });
}

TEST(StoreGather, LeavesTheTextsOnceInTheStore) {
  const StoreJob job(2);
  job.on_ranks([](Store& store) {
    StoreGather gather(store, "a");
    (void)gather("text");
    store.barrier("gathered");
    EXPECT_TRUE(store.check(std::vector<std::string>{"a/0/all"}));
    EXPECT_FALSE(store.check(std::vector<std::string>{"a/0/1"}));
    store.connection()->leave();
  });
}

TEST(StoreGather, TimesOutIfARankDoesNotCome) {
  const StoreJob job(2);
  Store store = job.rank(0);
  StoreGather gather(store, "a");
  EXPECT_THROW((void)gather("", 10ms), TimeoutError);
}

}  // namespace
}  // namespace lockstep::dist
