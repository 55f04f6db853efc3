// Ranks of this host that launch starts itself, without mpirun.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/launcher/launch/launched.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class LocalRanks : public Program {
 protected:
  static constexpr const char* kReady = "echo $$ > pid.part.$RANK; mv pid.part.$RANK pid.$RANK\n";
  /// For scripts: runs for a minute, handling signals in between.
  static constexpr const char* kLong =
      "i=0; while [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done\n";

  Launched start(const std::string& line, const std::string& before = "") const {
    return Launched("--transport tcp --oversubscribe " + line, folder_.path(), {}, before);
  }
  /// Starts a shell script on each rank.
  Launched start_script(int ranks, const std::string& body, const std::string& options = "") const {
    put_file(folder_ / "rank.sh", body);
    return start(fmt::format("-np {} {} sh rank.sh", ranks, options));
  }
  std::vector<pid_t> wait_for_ranks(int count) const {
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < count; ++rank) {
      const std::filesystem::path file = folder_ / fmt::format("pid.{}", rank);
      EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(file); })) << "rank " << rank;
      ranks.push_back(std::atoi(file_content(file).c_str()));
    }
    return ranks;
  }
};

TEST_F(LocalRanks, GiveTheirOutputWithTheirNumbersAndZero) {
  const Result result =
      start_script(3, "echo out $RANK of $OMPI_COMM_WORLD_SIZE; echo err >&2\n", "--tag-output")
          .end();
  EXPECT_EQ(result.status, 0) << result.errors;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(result.output, HasSubstr(fmt::format("[1,{0}]<stdout>:out {0} of 3\n", rank)));
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("[1,{}]<stderr>:err\n", rank)));
  }
}

TEST_F(LocalRanks, OnlyTheFirstReadsTheInput) {
  put_file(folder_ / "rank.sh", "cat > input.$RANK\n");
  const Result result = start("-np 2 sh rank.sh", "echo typed | ").end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(file_content(folder_ / "input.0"), "typed\n");
  EXPECT_EQ(file_content(folder_ / "input.1"), "");
}

TEST_F(LocalRanks, OneThatFailsIsNamedAndTheOthersEnd) {
  for (const auto& [how, status, text] :
       {std::tuple{"echo DataError: no file >&2; exit 3", 3, "rank 1 ended with exit status 3"},
        {"kill -9 $$", 137, "rank 1 was ended by signal 9 (Killed)"}}) {
    Launched launched =
        start_script(3, std::string("trap '' TERM\n") + kReady +
                            fmt::format("if [ $RANK = 1 ]; then {}; fi\n", how) + kLong);
    const std::vector<pid_t> ranks = wait_for_ranks(3);
    const Result result = launched.end();
    EXPECT_EQ(result.status, status) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(text));
    EXPECT_FALSE(any_runs(ranks));
    for (const int rank : {0, 1, 2}) std::filesystem::remove(folder_ / fmt::format("pid.{}", rank));
  }
}

TEST_F(LocalRanks, TheOneThatDiedIsNamedEvenIfOneThatLostItEndsFirst) {
  const Result result = start_script(2,
                                     "if [ $RANK = 0 ]; then touch lost; exit 5; fi\n"
                                     "while [ ! -e lost ]; do sleep 0.01; done; kill -9 $$\n")
                            .end();
  EXPECT_EQ(result.status, 137) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 1 was ended by signal 9"));
}

TEST_F(LocalRanks, ASignalIsARequestThatReachesAll) {
  Launched launched =
      start_script(3, std::string("trap 'touch saved.$RANK; exit 75' USR1\n") + kReady + kLong);
  const std::vector<pid_t> ranks = wait_for_ranks(3);
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  for (const int rank : {0, 1, 2}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / fmt::format("saved.{}", rank)));
  }
}

TEST_F(LocalRanks, ASecondSignalEndsThem) {
  Launched launched = start_script(2, std::string("trap '' USR1 TERM INT\n") + kReady + kLong);
  const std::vector<pid_t> ranks = wait_for_ranks(2);
  launched.signal(SIGINT);
  EXPECT_TRUE(launched.says("asking all ranks"));
  EXPECT_TRUE(any_runs(ranks));
  launched.signal(SIGINT);
  EXPECT_EQ(launched.end().status, 128 + SIGINT);
  EXPECT_FALSE(any_runs(ranks));
}

TEST_F(LocalRanks, EndWithALaunchThatIsKilled) {
  Launched launched = start_script(2, std::string("trap '' TERM HUP\n") + kReady + kLong);
  const std::vector<pid_t> ranks = wait_for_ranks(2);
  launched.signal(SIGKILL);
  EXPECT_TRUE(comes_true([&] { return !any_runs(ranks); }));
  EXPECT_EQ(launched.end().status, 128 + SIGKILL);
}

TEST_F(LocalRanks, TrainWithTheBitsOfOneWithoutMpirun) {
  put_config("run.txtpb", "reproducibility: BITWISE\n");
  const std::string bits = "run.txtpb --set train.micro_batch_size=1 --set train.batch_size=8 ";
  ASSERT_EQ(run("train " + bits + "--run-dir one").status, 0);
  std::filesystem::create_directory(folder_ / "bin");
  const Result result = Launched("--oversubscribe -np 3 " + bits + "--run-dir three",
                                 folder_.path(), {{"PATH", (folder_ / "bin").string()}})
                            .end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("no mpirun in PATH: ranks are started without"));
  EXPECT_THAT(result.errors, HasSubstr("3 ranks of"));
  EXPECT_TRUE(file_content(folder_ / "one/model.safetensors") ==
              file_content(folder_ / "three/model.safetensors"));
}

TEST_F(LocalRanks, OfARunSaveAndStopOnASignal) {
  put_config("run.txtpb", "checkpoint { every_steps: 0 }\n");
  Launched launched = start("-np 2 run.txtpb --run-dir d --steps 1000000");
  ASSERT_TRUE(comes_true([&] { return file_content(folder_ / "d/metrics.jsonl").size() > 200; }));
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("everything is saved"));
  EXPECT_THAT(result.errors, HasSubstr("--transport tcp"));
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "d/checkpoints"));
}

}  // namespace
}  // namespace lockstep::launcher
