// Processes that join a training job while it runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/launcher/elastic/elastic_job.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

using Joining = ElasticJob;

TEST_F(Joining, AProcessJoinsAtTheEndOfAStepAndChangesNoBit) {
  const Processes ranks = start(2, 3);
  Launched third = train("--join");
  ASSERT_TRUE(third.says("as rank 2 of 3"));
  ASSERT_TRUE(ranks[0]->says("1 rank on host"));
  EXPECT_TRUE(ranks[0]->says("going on with 3 ranks from step"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), &third});
  const std::vector<nlohmann::json> changes = lines_of("restarts.jsonl");
  ASSERT_EQ(changes.size(), 1);
  EXPECT_EQ(changes[0]["ranks"], 2);
  EXPECT_EQ(changes[0]["ranks_left"], 3);
  EXPECT_EQ(changes[0]["ranks_joined"], 1);
  EXPECT_EQ(changes[0]["steps_again"], 0);
  EXPECT_TRUE(changes[0]["training_again_s"].is_number());
  expect_bits_of_undisturbed_run("three ranks");
}

TEST_F(Joining, ProcessesThatCameBeforeTheRanksJoinInTheFirstSteps) {
  Launched third = train("--join", 4);
  Launched fourth = train("--join", 4);
  const Processes ranks = start(2, 4);
  ASSERT_TRUE(third.says("joined the run"));
  ASSERT_TRUE(fourth.says("joined the run"));
  EXPECT_TRUE(ranks[0]->says("going on with 4 ranks"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), &third, &fourth});
}

TEST_F(Joining, ARankThatIsAloneIsJoined) {
  const Processes ranks = start(1, 2);
  Launched second = train("--join", 2);
  ASSERT_TRUE(second.says("as rank 1 of 2"));
  EXPECT_TRUE(goes_on());
  // The one that joined goes on when the first is lost, and is joined itself.
  ranks[0]->signal(SIGKILL);
  EXPECT_TRUE(second.says("rank 0 on host"));
  Launched third = train("--join", 2);
  ASSERT_TRUE(third.says("as rank 1 of 2"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({&second, &third});
  expect_bits_of_undisturbed_run("after the first rank was lost");
}

TEST_F(Joining, ASpareTakesThePlaceOfTheNextRankThatIsLost) {
  for (const size_t lost : {1, 0}) {
    const Processes ranks = start(2, 2);
    Launched spare = train("--join", 2);
    ASSERT_TRUE(spare.says("the run has 2 ranks, and may have 2: waiting until one is lost"));
    EXPECT_TRUE(goes_on());
    ranks[lost]->signal(SIGKILL);
    ASSERT_TRUE(spare.says("as rank 1 of 2")) << lost;
    EXPECT_TRUE(goes_on());
    stop_and_expect_end({ranks[1 - lost].get(), &spare});
    expect_bits_of_undisturbed_run(fmt::format("without rank {}", lost));
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "straight");
  }
}

TEST_F(Joining, AProcessThatIsLostAsItJoinsStopsNobody) {
  const Processes ranks = start(2, 3);
  for (const char* fault : {"7:load:1:kill", "7:relu:1:kill", "7:threshold_backward:1:segv",
                            "7:_block_square_sums:1:kill"}) {
    Launched third = train("--join", 3, endless(),
                           fmt::format("RANK_FAULT={} OMPI_COMM_WORLD_RANK=7 "
                                       "OMPI_COMM_WORLD_SIZE=8 LOCKSTEP_TRANSPORT=tcp",
                                       fault));
    EXPECT_GE(third.end().status, 128) << fault;
    EXPECT_TRUE(goes_on()) << fault;
  }
  for (int i = 0; i < 10; ++i) {  // at any other moment
    Launched third = train("--join", 3);
    ASSERT_TRUE(third.says(i % 2 == 0 ? "joining at the end of a step" : "joined the run"));
    third.signal(SIGKILL);
    EXPECT_EQ(third.end().status, 128 + SIGKILL);
    EXPECT_TRUE(goes_on());
  }
  stop_and_expect_end({ranks[0].get(), ranks[1].get()});
  expect_bits_of_undisturbed_run("two ranks");
}

TEST_F(Joining, TheLeaderMayBeLostWhileOneJoins) {
  for (int i = 0; i < 5; ++i) {
    const Processes ranks = start(2, 3);
    Launched third = train("--join");
    ASSERT_TRUE(third.says("joining at the end of a step"));
    ranks[0]->signal(SIGKILL);
    ASSERT_TRUE(third.says("joined the run"));
    EXPECT_TRUE(goes_on());
    stop_and_expect_end({ranks[1].get(), &third});
    expect_bits_of_undisturbed_run("without the first leader");
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "straight");
  }
}

TEST_F(Joining, ProcessesThatAreNotOfTheJobAreRefused) {
  const Processes ranks = start(2, 3);
  const Result seed = train("--join --set seed=7").end();
  EXPECT_EQ(seed.status, 5);
  EXPECT_THAT(seed.errors, HasSubstr("another config than the ranks of this job"));
  EXPECT_THAT(seed.errors, HasSubstr("got \"seed: 7\""));
  const Result secret = train("--join", 3, endless(), "LOCKSTEP_JOB_SECRET=sesame").end();
  EXPECT_EQ(secret.status, 5);
  EXPECT_THAT(secret.errors, HasSubstr("does not know the secret"));
  const Result job = train("--join", 3, endless(), "LOCKSTEP_JOB_ID=other").end();
  EXPECT_EQ(job.status, 5);
  EXPECT_THAT(job.errors, HasSubstr("it is of another job"));
  const Result variable = train("--join", 3, endless(), "LOCKSTEP_SHM=0").end();
  EXPECT_EQ(variable.status, 5);
  EXPECT_THAT(variable.errors, HasSubstr("LOCKSTEP_SHM: 0"));
  const Result rank = train("--ranks 2 --rank 1").end();
  EXPECT_EQ(rank.status, 5);
  EXPECT_THAT(rank.errors, HasSubstr("trains already. A process joins it with --join"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get()});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/restarts.jsonl")) << "nobody has joined";
  const Result plain = run("train run.txtpb --join --rendezvous " + address_);
  EXPECT_EQ(plain.status, 2);
  EXPECT_THAT(plain.errors, HasSubstr("parallel.elastic"));
  const Result nobody = train("--join", 3, endless(), "LOCKSTEP_START_LIMIT=1").end();
  EXPECT_EQ(nobody.status, 5);
  EXPECT_THAT(nobody.errors, HasSubstr("no job that can be joined at " + address_));
}

TEST_F(Joining, AProcessThatWaitsEndsWithTheRun) {
  for (const bool stops : {false, true}) {
    const std::string more = stops ? endless() : "--steps 1000 " + steps_alone();
    Launched spare = train("--join", 2, more);
    const Processes ranks = start(2, 2, more);
    ASSERT_TRUE(spare.says("waiting until one is lost"));
    if (stops) ranks[0]->signal(SIGTERM);
    EXPECT_EQ(ranks[0]->end().status, stops ? 75 : 0);
    EXPECT_EQ(ranks[1]->end().status, stops ? 75 : 0);
    const Result result = spare.end();
    EXPECT_EQ(result.status, stops ? 75 : 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(stops ? "has been stopped before this process joined it"
                                               : "has finished before this process joined it"));
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(Joining, ASignalEndsAProcessThatWaits) {
  const Processes ranks = start(2, 2);
  Launched spare = train("--join", 2);
  ASSERT_TRUE(spare.says("waiting until one is lost"));
  spare.signal(SIGTERM);
  EXPECT_EQ(spare.end().status, 75);
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get()});
}

/// The same under `lockstep launch`, which starts lost ranks again.
class ComingBack : public Joining {
 protected:
  Launched launch(const std::string& options, const std::string& faults = "") const {
    return DisturbedRun::start(faults.empty() ? "9:relu:1:kill" : faults,
                               "--elastic --restart-delay 0.01 " + options, endless());
  }
  /// The process that is rank `rank` of the launcher's.
  static pid_t process_of(const Launched& launched, int rank) {
    for (const pid_t pid : descendants(launched.pid())) {
      try {
        if (file_content(fmt::format("/proc/{}/environ", pid))
                .find(fmt::format("OMPI_COMM_WORLD_RANK={}", rank)) != std::string::npos) {
          return pid;
        }
      } catch (const std::ios_base::failure&) {
        // It has ended meanwhile.
      }
    }
    return 0;
  }
};

TEST_F(ComingBack, ALostRankIsStartedAgainAndJoinsTheOthers) {
  Launched launched = launch("--max-restarts 3");
  ASSERT_TRUE(comes_true([&] { return steps() > 0; }));
  for (const int lost : {2, 0}) {
    const pid_t pid = process_of(launched, lost);
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(launched.says(fmt::format("rank {} is started again in", lost)));
    ASSERT_TRUE(launched.says(fmt::format("rank {} came back", lost)));
    EXPECT_TRUE(goes_on());
  }
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  expect_bits_of_undisturbed_run("both");
  int joined = 0;
  for (const nlohmann::json& change : lines_of("restarts.jsonl")) {
    joined += change.value("ranks_joined", 0);
  }
  EXPECT_EQ(joined, 2);
}

TEST_F(ComingBack, ARankThatFailsAgainAndAgainStaysOut) {
  // In its first step, whenever it is started.
  Launched launched = launch("--max-restarts 2", "3:relu:3:kill");
  ASSERT_TRUE(launched.says("rank 3 stays out: it was started again 2 times without a new"));
  EXPECT_TRUE(goes_on());
  launched.signal(SIGTERM);
  EXPECT_EQ(launched.end().status, 75);
  expect_bits_of_undisturbed_run("three ranks");
}

TEST_F(ComingBack, TheJobIsStartedAgainWhereOnlyThoseAreLeftThatHaveNotJoined) {
  Launched launched = launch("--max-restarts 3 --min-ranks 4");
  ASSERT_TRUE(comes_true([&] { return steps() > 0; }));
  ::kill(process_of(launched, 1), SIGKILL);
  ASSERT_TRUE(launched.says("restart 1 of 3"));
  EXPECT_TRUE(goes_on());
  launched.signal(SIGTERM);
  EXPECT_EQ(launched.end().status, 75);
}

TEST_F(ComingBack, AProcessThatIsStillOutsideEndsWithTheRun) {
  // One that is started again sleeps before it looks for the others.
  Launched launched = launch("--max-restarts 3", "1:join:1:sleep:1000000000");
  ASSERT_TRUE(comes_true([&] { return steps() > 0; }));
  ::kill(process_of(launched, 1), SIGKILL);
  ASSERT_TRUE(launched.says("rank 1 is started again in"));
  ASSERT_TRUE(comes_true([&] { return process_of(launched, 1) > 0; }));
  ::kill(process_of(launched, 0), SIGUSR1);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("rank 1 has not joined the others, which have ended"));
}

TEST_F(ComingBack, OptionsThatDoNotGoTogetherAreRefused) {
  const Result alone = run("launch --transport tcp -np 2 --max-ranks 2 run.txtpb");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.errors, HasSubstr("--max-ranks"));
  const Result few = run("launch --transport tcp -np 2 --elastic --max-ranks 1 run.txtpb");
  EXPECT_EQ(few.status, 2);
  EXPECT_THAT(few.errors, HasSubstr("expected at least the number of ranks, 2"));
  const Result config =
      run("config check run.txtpb --set parallel.elastic.min_ranks=3 --set "
          "parallel.elastic.max_ranks=2");
  EXPECT_EQ(config.status, 2);
  EXPECT_THAT(config.errors, HasSubstr("parallel.elastic.max_ranks is 2: expected at least"));
}

}  // namespace
}  // namespace lockstep::launcher
