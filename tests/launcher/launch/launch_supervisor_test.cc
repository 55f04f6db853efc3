#include "launcher/launch/launch_supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "launcher/launch/child_process.h"
#include "launcher/launch/launch_facts.h"
#include "tests/launcher/launch/launched.h"
#include "train/run/checkpoint_manifest.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

/// Jobs of small shell programs under the real mpirun.
class Launch : public Program {
 protected:
  void SetUp() override {
    static const LaunchFacts facts = find_launch_facts();
    if (facts.mpirun.empty()) GTEST_SKIP() << "no Open MPI: " << facts.no_mpirun;
  }
  void TearDown() override {
    // An mpirun that was killed has its session folder removed shortly after.
    for (const pid_t pid : mpiruns_) {
      EXPECT_TRUE(comes_true([&] { return !has_session(pid); })) << pid;
    }
  }
  static bool has_session(pid_t mpirun) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp", ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("ompi.") &&
          std::filesystem::exists(entry.path() / fmt::format("pid.{}", mpirun), ignored)) {
        return true;
      }
    }
    return false;
  }

  /// A command that runs `body` on each rank; $R is the rank.
  std::string script(const std::string& body) const {
    put_file(folder_ / "rank.sh", "R=$OMPI_COMM_WORLD_RANK\n" + body);
    return "sh ./rank.sh";
  }
  /// For scripts: signals that the rank is ready, and stores its process id.
  static constexpr const char* kReady = "echo $$ > pid.part.$R; mv pid.part.$R pid.$R\n";
  /// For scripts: runs for a minute, handling signals in between.
  static constexpr const char* kLong =
      "i=0; while [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done\n";

  std::vector<pid_t> wait_for_ranks(int count) {
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < count; ++rank) {
      const std::filesystem::path file = folder_ / fmt::format("pid.{}", rank);
      EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(file); })) << "rank " << rank;
      ranks.push_back(std::atoi(file_content(file).c_str()));
    }
    return ranks;
  }
  pid_t mpirun_of(const Launched& launched) {
    pid_t found = -1;
    EXPECT_TRUE(comes_true([&] {
      for (const pid_t pid : descendants(launched.pid())) {
        if (program_of(pid).ends_with("orterun") || program_of(pid).ends_with("mpirun") ||
            program_of(pid).ends_with("prterun")) {
          found = pid;
          return true;
        }
      }
      return false;
    }));
    mpiruns_.push_back(found);
    return found;
  }
  Launched start(const std::string& line) const { return Launched(line, folder_.path()); }
  Result launch(const std::string& line) const { return start(line).end(); }

  std::vector<pid_t> mpiruns_;
};

TEST_F(Launch, GivesTheOutputOfAllRanksAndZero) {
  const Result result = launch("-np 3 --oversubscribe " + script("echo out $R; echo err $R >&2\n"));
  EXPECT_EQ(result.status, 0) << result.errors;
  for (const char* line : {"out 0\n", "out 1\n", "out 2\n"}) {
    EXPECT_THAT(result.output, HasSubstr(line));
  }
  EXPECT_EQ(result.output.size(), 18) << result.output;
  EXPECT_EQ(result.errors.size(), 18) << result.errors;
}

TEST_F(Launch, WritesAFileForEachRankAndStream) {
  const Result result = launch("-np 2 --oversubscribe --tag-output --output-filename logs " +
                               script("echo out $R; echo err $R >&2\n"));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(file_content(folder_ / "logs/1/rank.0/stdout"), "out 0\n");
  EXPECT_EQ(file_content(folder_ / "logs/1/rank.1/stderr"), "err 1\n");
  EXPECT_THAT(result.output, HasSubstr("[1,1]<stdout>:out 1\n"));
  EXPECT_THAT(result.errors, HasSubstr("[1,0]<stderr>:err 0\n"));
  const Result quiet =
      launch("-np 1 --merge-stderr-to-stdout --log-dir merged:nocopy sh ./rank.sh");
  EXPECT_EQ(quiet.output + quiet.errors, "");
  EXPECT_THAT(file_content(folder_ / "merged/1/rank.0/stdout"), HasSubstr("err 0\n"));
}

TEST_F(Launch, NumbersTheRanksOfSeveralPrograms) {
  const Result result = launch("--oversubscribe -np 1 -x WORD=one " + script("echo $R $WORD $1\n") +
                               " a : -np 2 -x WORD=two sh ./rank.sh b");
  EXPECT_EQ(result.status, 0) << result.errors;
  for (const char* line : {"0 one a\n", "1 two b\n", "2 two b\n"}) {
    EXPECT_THAT(result.output, HasSubstr(line));
  }
}

TEST_F(Launch, TellsTheRankThatFailedAndItsStatus) {
  Launched launched =
      start("-np 2 --oversubscribe " +
            script(std::string(kReady) +
                   "if [ $R = 1 ]; then echo DataError: no file >&2; exit 3; fi\n" + kLong));
  wait_for_ranks(2);
  mpirun_of(launched);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 1 ended with exit status 3\n"));
  EXPECT_THAT(result.errors, HasSubstr("the last lines of rank 1:\n    DataError: no file\n"));
  EXPECT_THAT(result.errors, Not(HasSubstr("Primary job")));
  EXPECT_FALSE(any_runs(wait_for_ranks(2)));
}

TEST_F(Launch, ShowsTheErrorOfTheRankThatAnotherLost) {
  const Result result =
      launch("-np 2 --oversubscribe " +
             script("if [ $R = 1 ]; then echo DataError: no file >&2; touch failed; sleep 9; fi\n"
                    "while [ ! -e failed ]; do sleep 0.01; done; sleep 0.2\n"
                    "echo PeerLostError: rank 1 failed >&2; exit 5\n"));
  EXPECT_EQ(result.status, 5);
  EXPECT_THAT(result.errors,
              HasSubstr("rank 0 ended with exit status 5, after an error of rank 1"));
  EXPECT_THAT(result.errors, HasSubstr("the last lines of rank 1:\n    DataError: no file\n"));
}

TEST_F(Launch, TellsTheSignalThatEndedARank) {
  const Result result = launch(
      "-np 2 --oversubscribe " +
      script(std::string(kReady) + "trap '' TERM\nif [ $R = 1 ]; then kill -9 $$; fi\n" + kLong));
  EXPECT_EQ(result.status, 137);
  EXPECT_THAT(result.errors, HasSubstr("was ended by signal 9 (Killed); often"));
  EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 1 on "));
  EXPECT_FALSE(any_runs(wait_for_ranks(2)));
}

TEST_F(Launch, TurnsASignalIntoARequestThatReachesAllRanks) {
  // The first rank to stop waits for the other, like training does.
  const std::string body =
      std::string(
          "trap 'touch saved.$R; while [ ! -e saved.0 -o ! -e saved.1 ]; do sleep 0.01; "
          "done; exit 75' USR1\n") +
      kReady + kLong;
  Launched launched = start("-np 2 --oversubscribe " + script(body));
  const std::vector<pid_t> ranks = wait_for_ranks(2);
  mpirun_of(launched);
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "saved.0"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "saved.1"));
  EXPECT_THAT(result.errors, HasSubstr("asking all ranks to save"));
  EXPECT_FALSE(any_runs(ranks));
}

TEST_F(Launch, EndsProgramsThatKnowNoRequest) {
  Launched launched = start("-np 2 --oversubscribe " + script(std::string(kReady) + kLong));
  wait_for_ranks(2);
  launched.signal(SIGINT);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 128 + SIGINT) << result.errors;
}

TEST_F(Launch, EndsRanksOnASecondSignal) {
  Launched launched = start("-np 2 --oversubscribe " +
                            script(std::string("trap '' USR1 TERM INT\n") + kReady + kLong));
  const std::vector<pid_t> ranks = wait_for_ranks(2);
  mpirun_of(launched);
  const Clock::time_point begin = Clock::now();
  launched.signal(SIGTERM);
  EXPECT_TRUE(launched.says("asking all ranks"));
  EXPECT_TRUE(any_runs(ranks));
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("SIGTERM again"));
  EXPECT_LT(Clock::now() - begin, 15s);
  EXPECT_FALSE(any_runs(ranks));
}

TEST_F(Launch, ThatIsKilledTakesItsRanksAlong) {
  Launched launched =
      start("-np 2 --oversubscribe " + script(std::string("trap '' TERM HUP\n") + kReady +
                                              "while :; do echo some words; sleep 0.01; done\n"));
  std::vector<pid_t> ranks = wait_for_ranks(2);
  const pid_t mpirun = mpirun_of(launched);
  ASSERT_GT(mpirun, 1);
  launched.signal(SIGKILL);
  ranks.push_back(mpirun);
  EXPECT_TRUE(comes_true([&] { return !any_runs(ranks); }));
  EXPECT_EQ(launched.end().status, 128 + SIGKILL);
}

TEST_F(Launch, CleansUpAfterAnMpirunThatIsKilled) {
  Launched launched =
      start("-np 2 --oversubscribe " + script(std::string("trap '' TERM HUP\n") + kReady + kLong));
  const std::vector<pid_t> ranks = wait_for_ranks(2);
  const pid_t mpirun = mpirun_of(launched);
  ASSERT_GT(mpirun, 1);
  ::kill(mpirun, SIGKILL);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 137) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("mpirun was ended by signal 9"));
  EXPECT_FALSE(any_runs(ranks));
}

TEST_F(Launch, RefusesBeforeAnythingStarts) {
  script("touch started\n");
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"-np 2 ./nothere", "no program \"./nothere\""},
      {"-np 2 -H no-such-host.invalid:2 sh rank.sh", "no-such-host.invalid does not resolve"},
      {"-np 9999 sh rank.sh", "too few slots"},
      {"-np 2 nothere.txtpb", "nothere.txtpb"},
      {"--np-per-node 2 sh rank.sh", "unknown option --np-per-node"},
  };
  for (const auto& [line, expected] : rows) {
    const Result result = launch(line);
    EXPECT_EQ(result.status, 2) << line;
    EXPECT_THAT(result.errors, HasSubstr(expected));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "started"));
}

TEST_F(Launch, BecomesMpirunWithExec) {
  const Result result = launch("-np 2 --oversubscribe --exec --tag-output " +
                               script("echo $LOCKSTEP_RESTART_COUNT\n"));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("[1,0]<stdout>:0\n"));
  EXPECT_THAT(result.errors, Not(HasSubstr("lockstep launch:")));
}

TEST_F(Launch, OfARunTrainsItWithTheOptionsOfItsConfig) {
  put_config("run.txtpb", "launch { np: 1 env: \"WORD=x\" mca: \"rmaps_base_verbose=0\" }\n");
  const Result plan = launch("--dry-run run.txtpb --steps 3");
  EXPECT_EQ(plan.status, 0) << plan.errors;
  EXPECT_THAT(plan.output, HasSubstr("--mca rmaps_base_verbose 0 "));
  EXPECT_THAT(plan.output, HasSubstr("-x WORD=x "));
  EXPECT_THAT(plan.output, HasSubstr("train run.txtpb --steps 3 --run-dir runs/run-DATE-TIME\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  const Result result = launch("run.txtpb --run-dir d --steps 3");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("trained    3 steps"));
}

TEST_F(Launch, OfARunGoesOnFromItsCheckpointAfterARankWasKilled) {
  put_config("run.txtpb", "checkpoint { every_steps: 5 keep_last: 100 } launch { np: 1 }\n");
  Launched launched =
      start("--max-restarts 1 --restart-backoff 0 run.txtpb --run-dir d --steps 200");
  ASSERT_TRUE(comes_true([&] {
    return std::filesystem::exists(folder_ / "d/checkpoints/step-00000005/checkpoint.json");
  }));
  const pid_t mpirun = mpirun_of(launched);
  ASSERT_GT(mpirun, 1);
  const std::vector<pid_t> ranks = descendants(mpirun);
  ASSERT_EQ(ranks.size(), 1);
  ::kill(ranks[0], SIGKILL);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("rank 0 on "));
  EXPECT_THAT(result.errors, HasSubstr("restart 1 of 1"));
  EXPECT_THAT(result.output, HasSubstr(" after "));  // "trained N steps after M"
}

TEST_F(Launch, OfARunSavesAndStopsOnASignal) {
  put_config("run.txtpb", "checkpoint { every_steps: 0 }\n");
  Launched launched = start("-np 1 run.txtpb --run-dir d --steps 1000000");
  ASSERT_TRUE(comes_true([&] { return file_content(folder_ / "d/metrics.jsonl").size() > 200; }));
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("everything is saved"));
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "d/checkpoints"));
}

/// One rank without a launcher, supervised by this process.
class SupervisedAlone : public Program {
 protected:
  int supervise(const std::string& body, int max_restarts, bool trains = false) {
    SignalQueue signals;
    return supervise_launch(signals, [&](const LaunchStart& start) {
      LaunchPlan plan;
      plan.way = LaunchPlan::Way::kDirect;
      plan.contexts.resize(1);
      plan.ranks = 1;
      plan.ranks_here = {{0, {"/bin/sh", "-c", body}, {}, folder_.path().string()}};
      plan.environment = {{kRestartVariable, std::to_string(start.restart)}};
      plan.trains = trains;
      plan.run_directory = (folder_ / "run").string();
      plan.options.max_restarts = max_restarts;
      plan.options.restart_delay_seconds = 0.001;
      plan.options.grace_seconds = 5;
      return plan;
    });
  }
};

TEST_F(SupervisedAlone, TheBudgetOfRestartsIsWholeAgainAfterACheckpoint) {
  train::CheckpointManifest manifest;
  manifest.position.step = 5;
  manifest.optimizer = "adamw";
  put_file(folder_ / "manifest", train::format_manifest(manifest));
  testing::internal::CaptureStderr();
  // Two failures before and two after the only checkpoint.
  const int status = supervise(
      "echo x >> starts; n=$LOCKSTEP_RESTART_COUNT; if [ $n = 1 ]; then "
      "mkdir -p run/checkpoints/step-00000005; "
      "cp manifest run/checkpoints/step-00000005/checkpoint.json; fi; exit 5",
      1, true);
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, 5);
  EXPECT_EQ(file_content(folder_ / "starts"), "x\nx\nx\n") << errors;
}

TEST_F(SupervisedAlone, TheRestartsAreSpentInTheEnd) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(supervise("echo x >> starts; exit 4", 2), 4);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no restart: 2 without progress"));
  EXPECT_EQ(file_content(folder_ / "starts"), "x\nx\nx\n");
}

TEST_F(SupervisedAlone, ARunIsNotStartedAgainForWhatWouldHappenAgain) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(supervise("echo x >> starts; exit 2", 3, true), 2);
  EXPECT_EQ(supervise("echo x >> starts; exit 7", 3, true), 7);
  EXPECT_EQ(supervise("echo x >> starts; exit 75", 3, true), 75);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("rank 0 ended with exit status 2"));
  EXPECT_EQ(file_content(folder_ / "starts"), "x\nx\nx\n");
}

TEST_F(SupervisedAlone, ProcessesThatTheRankLeftAreKilled) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(supervise("sleep 60 & echo $! > left; exit 0", 0), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the program left 1 process behind"));
  EXPECT_FALSE(runs(std::atoi(file_content(folder_ / "left").c_str())));
}

TEST_F(SupervisedAlone, AnMpirunThatHangsAfterItsRanksIsEnded) {
  testing::internal::CaptureStderr();
  SignalQueue signals;
  const int status = supervise_launch(signals, [&](const LaunchStart&) {
    LaunchPlan plan;
    plan.launcher = "Open MPI 4.1.4";
    plan.contexts.resize(1);
    plan.ranks = 2;
    plan.command = {"/bin/sh", "-c",
                    fmt::format("cd '{}'\n", folder_.path().string()) +
                        "mkfifo never; trap '' TERM\n"
                        "says() { echo \"[vm:1] [[27,0],0] ACTIVATE $1 AT a.c:1\" >&2; }\n"
                        "says 'JOB [27,1] STATE RUNNING'\n"
                        "says 'PROC [[27,1],0] STATE NORMALLY TERMINATED'\n"
                        "says 'PROC [[27,1],1] STATE NORMALLY TERMINATED'\n"
                        "read x < never"};
    return plan;
  });
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, 0) << errors;
  EXPECT_THAT(errors, HasSubstr("all ranks have ended, but mpirun does not: ending it"));
}

/// A machine without mpirun, where a single rank is started directly.
class LaunchWithoutMpirun : public Program {
 protected:
  /// `before`: shell commands that run before launch.
  Launched start(const std::string& options, const std::string& body,
                 const std::string& before = "") {
    std::filesystem::create_directory(folder_ / "bin");
    for (const char* program : {"sh", "sleep"}) {
      std::filesystem::create_symlink(fmt::format("/bin/{}", program),
                                      folder_ / fmt::format("bin/{}", program));
    }
    put_file(folder_ / "rank.sh", body);
    return Launched("-np 1 " + options + " sh rank.sh", folder_.path(),
                    {{"PATH", (folder_ / "bin").string()}}, before);
  }
  void wait_for(const std::string& file) const {
    EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(folder_ / file); }));
  }
  static constexpr const char* kReadyAndLong =
      "echo > ready; i=0; while [ $i -lt 1000 ]; do sleep 0.02; i=$((i+1)); done\n";
};

TEST_F(LaunchWithoutMpirun, ASignalReachesTheRank) {
  Launched launched = start("", std::string("trap 'exit 75' USR1\n") + kReadyAndLong);
  wait_for("ready");
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("no mpirun in PATH: ranks are started without"));
}

TEST_F(LaunchWithoutMpirun, HangupsThatAreIgnoredAsUnderNohupStayIgnored) {
  Launched launched = start("", std::string("trap 'exit 75' USR1\n") + kReadyAndLong,
                            /*before=*/"trap '' HUP; ");
  wait_for("ready");
  launched.signal(SIGHUP);
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("SIGTERM: asking all ranks"));
  EXPECT_THAT(result.errors, Not(HasSubstr("HUP")));
}

TEST_F(LaunchWithoutMpirun, ARankThatIsStoppedCanStillActOnItsTermination) {
  Launched launched = start("--grace 0.2",
                            "echo $$ > pid.part; trap '' USR1\n"
                            "trap 'echo > acted; exit 3' TERM\n" +
                                std::string(kReadyAndLong));
  wait_for("ready");
  const pid_t rank = std::atoi(file_content(folder_ / "pid.part").c_str());
  ::kill(rank, SIGSTOP);
  EXPECT_TRUE(
      comes_true([&] { return says(file_content(fmt::format("/proc/{}/stat", rank)), ") T "); }));
  launched.signal(SIGTERM);
  EXPECT_EQ(launched.end().status, 128 + SIGTERM);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "acted")) << "it was killed while it was stopped";
}

TEST_F(LaunchWithoutMpirun, TheGraceIsNotExceeded) {
  Launched launched = start("--grace 0.2", std::string("trap '' USR1\n") + kReadyAndLong);
  wait_for("ready");
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("did not stop within 0.2 s"));
}

TEST_F(LaunchWithoutMpirun, AJobEndsAfterTheTimeout) {
  const Result result = start("--timeout 0.3 --max-restarts 2", kReadyAndLong).end();
  EXPECT_EQ(result.status, 110) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("time limit of 0.3 s"));
}

TEST_F(LaunchWithoutMpirun, StartsAgainUntilAllGoesWell) {
  const Result result = start("--max-restarts 5 --restart-backoff 0.05 --log-dir logs",
                              "echo start $LOCKSTEP_RESTART_COUNT of $LOCKSTEP_JOB_ID\n"
                              "[ $LOCKSTEP_RESTART_COUNT = 2 ] || exit 4\n")
                            .end();
  EXPECT_EQ(result.status, 0) << result.errors;
  const std::string id = result.output.substr(result.output.find("of "), 15);
  EXPECT_EQ(result.output, fmt::format("start 0 {0}\nstart 1 {0}\nstart 2 {0}\n", id));
  EXPECT_EQ(file_content(folder_ / "logs/1/rank.0/stdout"), result.output);
  EXPECT_THAT(result.errors, HasSubstr("restart 1 of 5 in 0.05 s"));
  EXPECT_THAT(result.errors, HasSubstr("restart 2 of 5 in 0.1 s"));
}

TEST_F(LaunchWithoutMpirun, ASignalBetweenTwoStartsIsTheEnd) {
  Launched launched = start("--max-restarts 5 --restart-backoff 30", "exit 4\n");
  EXPECT_TRUE(launched.says("restart 1 of 5"));
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.errors;
}

TEST_F(LaunchWithoutMpirun, KillsTheRankWhenItIsKilled) {
  Launched launched = start("", "echo $$ > pid.part; trap '' TERM\n" + std::string(kReadyAndLong));
  wait_for("ready");
  const pid_t rank = std::atoi(file_content(folder_ / "pid.part").c_str());
  EXPECT_TRUE(runs(rank));
  launched.signal(SIGKILL);
  EXPECT_TRUE(comes_true([&] { return !runs(rank); }));
}

TEST(ChildProcess, ThatCannotStartSaysWhy) {
  EXPECT_TRUE(says(train::message_of<ConfigError>([] { ChildProcess({"/nowhere"}, {}, ""); }),
                   "/nowhere cannot be started: No such file"));
  EXPECT_TRUE(
      says(train::message_of<ConfigError>([] { ChildProcess({"/bin/true"}, {}, "/nowhere"); }),
           "in /nowhere: No such file"));
}

}  // namespace
}  // namespace lockstep::launcher
