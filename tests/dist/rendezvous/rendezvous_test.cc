#include "dist/rendezvous/rendezvous.h"

#include <gtest/gtest.h>

#include <string>

#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_message.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

RankEnvironment rank_1_of_4() {
  RankEnvironment environment;
  environment.rank = 1;
  environment.size = 4;
  environment.source = "torchrun's variables";
  return environment;
}

TEST(Rendezvous, IsAtTheMastersAddress) {
  RankEnvironment environment = rank_1_of_4();
  environment.master_address = "alpha";
  environment.master_port = 4000;
  const Rendezvous found = rendezvous_of(environment, "s");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.size, 4);
  EXPECT_EQ(found.address, "alpha:4000");
  EXPECT_EQ(found.secret, "s");
  EXPECT_FALSE(found.host_may_come);
  environment.master_address = "fd00::1";
  EXPECT_EQ(rendezvous_of(environment, "").address, "[fd00::1]:4000");
}

TEST(Rendezvous, HasAPortOfTheJobsIdWhereNoneIsTold) {
  RankEnvironment environment = rank_1_of_4();
  environment.master_address = "alpha";
  EXPECT_EQ(rendezvous_of(environment, "").address, "alpha:29500");
  environment.job_id = "77.0";
  const Endpoint first = parse_endpoint(rendezvous_of(environment, "").address);
  EXPECT_GE(first.port, 15000);
  EXPECT_LT(first.port, 30000);
  EXPECT_EQ(rendezvous_of(environment, "").address, to_string(first));
  environment.job_id = "77.1";
  EXPECT_NE(parse_endpoint(rendezvous_of(environment, "").address).port, first.port);
}

TEST(Rendezvous, IsOnThisHostIfAllRanksAre) {
  RankEnvironment environment = rank_1_of_4();
  environment.local_size = 4;
  EXPECT_EQ(rendezvous_of(environment, "").address, "127.0.0.1:29500");
  environment.local_size = 2;
  expect_error<ConfigError>([&] { (void)rendezvous_of(environment, ""); },
                            "[launch] rank 1 of 4 (torchrun's variables)",
                            "does not know where rank 0 is", "LOCKSTEP_MASTER_ADDR");
}

TEST(Rendezvous, IsOfAnotherJobAfterARestart) {
  RankEnvironment environment = rank_1_of_4();
  environment.local_size = 4;
  const Rendezvous before = rendezvous_of(environment, "");
  environment.restart_count = 1;
  EXPECT_EQ(rendezvous_of(environment, "").address, before.address);
  EXPECT_NE(rendezvous_of(environment, "").job, before.job);
}

TEST(Rendezvous, LeavesTheNumberOpenThatNobodyHasTold) {
  RankEnvironment environment = rank_1_of_4();
  environment.numbered = false;
  environment.in_kubernetes = true;
  environment.master_address = "alpha";
  EXPECT_EQ(rendezvous_of(environment, "").rank, kAnyRank);
  EXPECT_TRUE(rendezvous_of(environment, "").host_may_come);
}

TEST(Rendezvous, NamesTheJobAndSaysHowToTellWhereRank0Is) {
  RankEnvironment environment = rank_1_of_4();
  environment.local_size = 4;
  EXPECT_EQ(rendezvous_of(environment, "").job, "without a name");
  environment.restart_count = 2;
  EXPECT_EQ(rendezvous_of(environment, "").job, "without a name, restart 2");
  environment.job_id = "77.0";
  EXPECT_EQ(rendezvous_of(environment, "").job, "77.0, restart 2");
  // FNV-1a of the id, modulo 15000.
  uint32_t hash = 2166136261U;
  for (const char c : std::string("77.0")) hash = (hash ^ static_cast<uint32_t>(c)) * 16777619U;
  EXPECT_EQ(rendezvous_of(environment, "").address,
            "127.0.0.1:" + std::to_string(15000 + hash % 15000));
  environment.local_size = std::nullopt;
  expect_error<ConfigError>(
      [&] { (void)rendezvous_of(environment, ""); },
      "[launch] rank 1 of 4 (torchrun's variables) does not know where rank 0 is: expected its "
      "host, as ranks may be on several. Set LOCKSTEP_MASTER_ADDR (and LOCKSTEP_MASTER_PORT), or "
      "MASTER_ADDR, or give --rendezvous HOST:PORT; for ranks of one host set "
      "LOCKSTEP_LOCAL_WORLD_SIZE=4.");
}

}  // namespace
}  // namespace lockstep::dist
