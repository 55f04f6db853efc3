// JobControl over a store whose ranks are processes that end in various ways. Requirements shared
// with the other JobControl are in job_control_test.cc, tests that take time in
// store_liveness_test.cc.

#include "dist/rendezvous/store_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/base/child_process.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/rank_processes.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class StoreControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses threads in forked children";
  }
};

std::string name_of(int rank, pid_t pid) {
  return "rank " + std::to_string(rank) + " (host " + host_name() + ", pid " + std::to_string(pid) +
         ")";
}

TEST_F(StoreControlTest, ARankThatIsKilledIsKnownToAllOthersBeforeATimeout) {
  RankProcesses ranks(4, /*with_server=*/true);
  const auto start = Clock::now();
  ranks.kill(2, SIGKILL);
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(ranks.failure(rank),
                AllOf(HasSubstr("2: " + name_of(2, ranks.pid(2)) + " ended without leaving"),
                      HasSubstr("connection")));
  }
  EXPECT_LT(Clock::now() - start, milliseconds(8000));  // a timeout is 10 s
}

TEST_F(StoreControlTest, TheServersRankThatIsKilledIsNamedByAllOthersBeforeATimeout) {
  RankProcesses ranks(4, /*with_server=*/true);
  const auto start = Clock::now();
  ranks.kill(0, SIGKILL);
  for (const int rank : {1, 2, 3}) {
    EXPECT_THAT(ranks.failure(rank),
                AllOf(HasSubstr("0: " + name_of(0, ranks.pid(0))), HasSubstr("ended without")));
  }
  EXPECT_LT(Clock::now() - start, milliseconds(8000));  // a timeout is 10 s
}

TEST_F(StoreControlTest, ARankThatExitsWithoutLeavingIsTheFailure) {
  RankProcesses ranks(3, /*with_server=*/true);
  ranks.tell(1, 'x');
  for (const int rank : {0, 2}) {
    EXPECT_THAT(ranks.failure(rank), HasSubstr("1: " + name_of(1, ranks.pid(1))));
  }
}

TEST_F(StoreControlTest, WhatARankFailsWithBeforeItExitsIsTheFailure) {
  RankProcesses ranks(3, /*with_server=*/true);
  ranks.tell(1, 'f');
  for (const int rank : {0, 2}) {
    EXPECT_EQ(ranks.failure(rank), "1: the loader threw");
  }
}

TEST_F(StoreControlTest, ALauncherThatIsKilledIsNamedAsSuch) {
  RankProcesses ranks(2, /*with_server=*/false);
  ranks.kill_server();
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ranks.failure(rank), HasSubstr("0: the launcher (host " + host_name() + ", pid " +
                                               std::to_string(ranks.server_pid()) + ")"));
  }
}

TEST_F(StoreControlTest, AChildThatARankForkedDoesNotHideItsEnd) {
  RankProcesses ranks(3, /*with_server=*/true);
  const pid_t grandchild = ranks.fork_in(2);
  ASSERT_GT(grandchild, 0);
  ranks.kill(2, SIGKILL);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ranks.failure(rank), HasSubstr("2: " + name_of(2, ranks.pid(2))));
  }
  EXPECT_EQ(::kill(grandchild, 0), 0) << "the child lives";
  EXPECT_EQ(::kill(grandchild, SIGKILL), 0);
}

TEST_F(StoreControlTest, AForkedChildMayDestroyWhatItHasOfTheStore) {
  EXPECT_EQ(status_of_child([] {
              auto job = std::make_unique<StoreJob>(1);
              auto store = std::make_unique<Store>(job->rank(0));
              store->set("k", "v");
              const int status = status_of_child([&] {
                store.reset();
                job.reset();
                return true;
              });
              const bool works = store->get("k") == "v";
              store->connection()->leave();
              return status == 0 && works && job->server().wait_until_left(milliseconds(5000));
            }),
            0);
}

}  // namespace
}  // namespace lockstep::dist
