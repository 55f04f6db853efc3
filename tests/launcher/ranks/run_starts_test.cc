// What the starts of a run of several ranks leave in its directory, and what `lockstep trace` makes
// of it.

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "dist/flight/flight_log.h"
#include "tests/launcher/ranks.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kForEver = "--steps 1000000 --set train.batch_size=6";

class RunStarts : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    if (!IsSkipped()) put_config("run.txtpb");
  }
  std::string start_of(int rank) const {
    return dist::read_flight_log(folder_ / fmt::format("run/flight/flight.rank{}.json", rank))
        .start;
  }
  bool has_log(int rank) const {
    return std::filesystem::exists(folder_ / fmt::format("run/flight/flight.rank{}.json", rank));
  }
  /// Contents and names of all files below `folder`, but of run.lock, as text.
  std::string contents(const std::string& folder) const {
    return shell(fmt::format("find {} -type f ! -name run.lock | sort | xargs sha256sum", folder))
        .output;
  }
};

TEST_F(RunStarts, LogsOfOneStartBelongTogetherAndThoseOfTwoAreNotMixed) {
  ASSERT_NE(train(3, "run", kForEver, rank_1("kill -9 $$")).status, 0);
  ASSERT_TRUE(has_log(0) && has_log(2) && !has_log(1));
  EXPECT_EQ(start_of(0), start_of(2));
  const std::string first = start_of(0);
  // In the next start rank 2 dies, so that its log stays that of the first one.
  const std::string kill_2 = beside_rank(2, "[ $(wc -l <run/starts.jsonl) -gt 1 ]", "kill -9 $$");
  ASSERT_NE(train(3, "run", kForEver, kill_2).status, 0);
  ASSERT_TRUE(has_log(1));
  EXPECT_NE(start_of(1), first);
  EXPECT_EQ(start_of(2), first);
  const Result traced = run("trace run");
  EXPECT_EQ(traced.status, 0) << traced.errors;
  EXPECT_THAT(traced.output,
              StartsWith("Logs of 2 of 3 ranks; none of rank 2.\n"
                         "Left out, being of another start of the job: logs of rank 2.\n"));
  EXPECT_THAT(traced.output, Not(HasSubstr("different operations")));
}

TEST_F(RunStarts, ANewDirectoryGetsTheLogsToo) {
  const Result result = on_ranks(
      2, fmt::format("{} exec \"$0\" train run.txtpb {}",
                     beside_rank(1, "[ -s runs/*/metrics.jsonl ]", "kill -9 $$"), kForEver));
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(run("trace runs/*").output, StartsWith("Logs of 1 of 2 ranks; none of rank 1.\n"));
}

TEST_F(RunStarts, ACleanEndIsToldAndLeavesNoLog) {
  ASSERT_EQ(train(2, "run", "--steps 3").status, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/flight"));
  const Result traced = run("trace run");
  EXPECT_EQ(traced.status, 0) << traced.errors;
  EXPECT_EQ(traced.output, "The last start of run (2 ranks) ended well: all steps are done.\n");
  EXPECT_THAT(run("trace run --json").output, HasSubstr("\"end\": \"finished\""));
}

TEST_F(RunStarts, ACleanEndIsToldBeforeTheLogsOfAnEarlierStart) {
  // Of a step that changes weights as it runs nothing is saved: the next start trains from the
  // begin.
  const std::string unsaved =
      " --set optimizer.optimizer_in_backward=true --set optimizer.clip_grad_norm=0";
  ASSERT_NE(train(2, "run", kForEver + unsaved, rank_1("kill -9 $$")).status, 0);
  ASSERT_EQ(train(2, "run", "--steps 3").status, 0);
  EXPECT_THAT(run("trace run").output,
              StartsWith("The last start of run (2 ranks) ended well: all steps are done.\n"
                         "The logs are of an earlier start:\n\nLogs of 1 of 2 ranks; none of "
                         "rank 1.\n"));
}

TEST_F(RunStarts, LogsOfAStartThatFailsBeforeItTrainsAreNotTakenForThoseOfAnEarlierOne) {
  put_file(folder_ / "text.txtpb",
           "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 8 } }\n"
           "data { text { path: 'text' held_out_bytes: 100 } }\n"
           "train { steps: 3 batch_size: 2 }\n");
  put_file(folder_ / "text", std::string(1000, 'a'));
  std::filesystem::create_directory(folder_ / "elsewhere");
  const std::string start =
      "run=$PWD/run; config=$PWD/text.txtpb; [ $OMPI_COMM_WORLD_RANK = 0 ] || cd $in; exec \"$0\" "
      "train $config --run-dir $run --steps ";
  ASSERT_EQ(on_ranks(2, start + "3", "in=.").status, 0);
  const Result failed = on_ranks(2, start + "6", "in=elsewhere");
  EXPECT_EQ(failed.status, 3) << failed.errors;
  EXPECT_THAT(failed.errors, HasSubstr("PeerLostError: [dist] rank 1 failed: DataError: "));
  EXPECT_THAT(run("trace run").output, StartsWith("Logs of 2 of 2 ranks.\n"));
}

TEST_F(RunStarts, AStopLeavesNoLogWhicheverRankIsAskedAndWhen) {
  const auto expect_stopped = [&](const std::string& way, const Result& result) {
    EXPECT_EQ(result.status, 75) << way << "\n" << result.errors;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run/flight")) << way << "\n" << result.errors;
    std::filesystem::remove_all(folder_ / "run");
  };
  // SIGTERM has a handler: before the ranks are connected. mpirun itself may hang when a rank ends
  // then (in PMIx), which launch ends.
  const std::string handled =
      "[ $((0x$(sed -n \"s/SigCgt:.//p\" /proc/$$/status) & 0x4000)) != 0 ]";
  const std::string locked = "[ -e run/run.lock ]";  // they are connected
  const std::string trains = "[ -s run/metrics.jsonl ]";
  for (const int rank : {0, 1}) {
    const std::string early = beside_rank(rank, handled, "kill -TERM $$");
    expect_stopped(early, run(fmt::format("launch -np 2 --oversubscribe --allow-run-as-root sh -c "
                                          "'{} exec \"$0\" train run.txtpb --run-dir run {}' "
                                          "'{}/lockstep'",
                                          early, kForEver, LOCKSTEP_BIN_DIR)));
    for (const std::string& when : {locked, trains}) {
      const std::string way = beside_rank(rank, when, "kill -TERM $$");
      expect_stopped(way, train(2, "run", kForEver, way));
    }
  }
  EXPECT_EQ(train(2, "run", "--steps 1000000 --time-limit 0.0001").status, 75);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/flight"));
  EXPECT_EQ(run("trace run").output,
            "The last start of run (2 ranks) ended well: it was stopped, with everything saved.\n");
}

TEST_F(RunStarts, LaunchDoesNotStartAgainWhatWasStopped) {
  const Result result = run(
      "launch --max-restarts 3 -np 2 --oversubscribe --allow-run-as-root run.txtpb --run-dir run "
      "--steps 1000000 --time-limit 0.0001");
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, Not(HasSubstr("restart 1")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/flight"));
  EXPECT_THAT(run("trace run").output, HasSubstr("ended well: it was stopped"));
}

TEST_F(RunStarts, ARefusedSecondJobWritesNothingIntoTheFirstOnesRun) {
  for (const std::string more :
       {"", " --set parallel.strategy=FULL_SHARD --set checkpoint.files=SHARDS"}) {
    // The lock of a run that is going on, without one that writes.
    ASSERT_EQ(train(2, "run", "--steps 3" + more).status, 0) << more;
    const std::string before = contents("run");
    const Result second =
        shell("exec 9<run; flock -n 9 || exit 9; " + mpirun() +
              fmt::format(" -np 2 '{}/lockstep' train run.txtpb --run-dir run --steps 6{}",
                          LOCKSTEP_BIN_DIR, more));
    EXPECT_EQ(second.status, 2) << second.errors;
    EXPECT_THAT(second.errors, HasSubstr("a run is there already"));
    EXPECT_EQ(contents("run"), before) << more;
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(RunStarts, TheWordsOfTheRankThatFailsReachTheOthersAndTheTrace) {
#ifndef LOCKSTEP_TEST_PLUGINS
  GTEST_SKIP() << "no plug-ins";
#else
  put_file(folder_ / "mlp.txtpb",
           "model { mlp { inputs: 8 hidden_widths: [32] classes: 4 activation: RELU } }\n"
           "data { random {} }\n"
           "train { steps: 100000 batch_size: 6 }\n");
  const Result result = on_ranks(3,
                                 "exec \"$0\" train mlp.txtpb --run-dir run --load "
                                 "'\"'" LOCKSTEP_TEST_PLUGINS "/librank_fault.so'\"'",
                                 "RANK_FAULT=1:relu:20:throw");
  EXPECT_EQ(result.status, 1) << result.errors;
  const std::string words = "Error: [relu] the fault that was asked for";
  EXPECT_THAT(result.errors, HasSubstr("PeerLostError: [dist] rank 1 failed: " + words));
  const std::string traced = run("trace run").output;
  EXPECT_THAT(traced, HasSubstr("ranks 0, 2: [dist] rank 1 failed: " + words));
  EXPECT_THAT(traced, HasSubstr("rank 1: [dist] this rank failed: " + words));
#endif
}

}  // namespace
}  // namespace lockstep::launcher
