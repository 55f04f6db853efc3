// Programs of several ranks without MPI and without a launcher.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "dist/rendezvous/socket.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class RendezvousTest : public Program {
 protected:
  void SetUp() override { put_config("run.txtpb"); }

  /// A port of loopback that was free a moment ago.
  static uint16_t free_port() {
    dist::Endpoint endpoint{"127.0.0.1", 0};
    (void)dist::listen_at(endpoint);
    return endpoint.port;
  }
  /// torchrun's variables of one host's ranks.
  static std::string torchrun(int rank, int ranks, uint16_t port) {
    return fmt::format(
        "RANK={0} WORLD_SIZE={1} LOCAL_RANK={0} LOCAL_WORLD_SIZE={1} MASTER_ADDR=127.0.0.1 "
        "MASTER_PORT={2}",
        rank, ranks, port);
  }
  /// Runs one shell command for each rank at the same time; returns their results.
  std::vector<Result> all(int ranks, const std::function<std::string(int rank)>& command) const {
    std::string script;
    for (int rank = 0; rank < ranks; ++rank) {
      script += fmt::format("({{ {}\n}} > .out{} 2> .err{}; echo $? > .status{}) & ", command(rank),
                            rank, rank, rank);
    }
    (void)shell(script + "wait");
    std::vector<Result> results;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto content = [&](const char* name) {
        return file_content(folder_ / fmt::format("{}{}", name, rank));
      };
      const std::string status = content(".status");
      results.push_back(
          {status.empty() ? -1 : std::stoi(status), content(".out"), content(".err")});
    }
    return results;
  }
  static std::string train(const std::string& variables, const std::string& more = "") {
    return fmt::format("env {} timeout 60 '{}/lockstep' train run.txtpb --run-dir run {}",
                       variables, LOCKSTEP_BIN_DIR, more);
  }
  static void expect_success(const std::vector<Result>& results) {
    for (const Result& result : results) EXPECT_EQ(result.status, 0) << result.errors;
  }
};

TEST_F(RendezvousTest, RanksOfTorchrunsVariablesTrainWithTheBitsOfOne) {
  const std::string bits =
      " --set reproducibility=BITWISE --set train.micro_batch_size=1 --set train.batch_size=8";
  ASSERT_EQ(run("train run.txtpb --run-dir one" + bits).status, 0);
  for (const char* shared_memory : {"0", "1"}) {
    const uint16_t port = free_port();
    const std::vector<Result> results = all(2, [&](int rank) {
      return train(torchrun(rank, 2, port) + " LOCKSTEP_SHM=" + shared_memory, bits);
    });
    expect_success(results);
    EXPECT_THAT(results[0].errors, HasSubstr("2 ranks of"));
    EXPECT_TRUE(file_content(folder_ / "one/model.safetensors") ==
                file_content(folder_ / "run/model.safetensors"));
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(RendezvousTest, RanksMeetAtAnAddressOfTheCommandLine) {
  const uint16_t port = free_port();
  expect_success(all(3, [&](int rank) {
    return train("", fmt::format("--set train.batch_size=6 --rendezvous 127.0.0.1:{} --ranks 3 "
                                 "--rank {}",
                                 port, rank));
  }));
}

TEST_F(RendezvousTest, RanksWithoutNumbersGetThemWhereTheyMeet) {
  const uint16_t port = free_port();
  const std::vector<Result> results = all(3, [&](int) {
    return train("",
                 fmt::format("--set train.batch_size=6 --rendezvous 127.0.0.1:{} --ranks 3", port));
  });
  expect_success(results);
  int leaders = 0;
  for (const Result& result : results) leaders += says(result.errors, "3 ranks of") ? 1 : 0;
  EXPECT_EQ(leaders, 1);
}

TEST_F(RendezvousTest, PodsOfAnIndexedJobAreRanks) {
  const uint16_t port = free_port();
  expect_success(all(2, [&](int rank) {
    return train(
        fmt::format("JOB_COMPLETION_INDEX={} LOCKSTEP_WORLD_SIZE=2 "
                    "LOCKSTEP_MASTER_ADDR=localhost LOCKSTEP_MASTER_PORT={}",
                    rank, port));
  }));
}

TEST_F(RendezvousTest, TasksOfAStepOfSlurmMeetOnItsFirstNode) {
  expect_success(all(2, [&](int rank) {
    return train(
        fmt::format("SLURM_JOB_ID={} SLURM_STEP_ID=0 SLURM_PROCID={} SLURM_NTASKS=2 "
                    "SLURM_LOCALID={} SLURM_NODEID=0 SLURM_NNODES=1 "
                    "SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=localhost",
                    ::getpid(), rank, rank));
  }));
}

TEST_F(RendezvousTest, TheCommandToGoOnIsTheLaunchersOwn) {
  const auto told = [&](const std::function<std::string(int rank)>& variables) {
    const std::vector<Result> results =
        all(2, [&](int rank) { return train(variables(rank), "--steps 2 --time-limit 0.0001"); });
    EXPECT_EQ(results[0].status, 75) << results[0].errors;
    std::filesystem::remove_all(folder_ / "run");
    return results[0].errors;
  };
  const uint16_t port = free_port();
  EXPECT_THAT(
      told([&](int rank) { return torchrun(rank, 2, port); }),
      AllOf(HasSubstr("To go on, start all 2 ranks again as they were started, each with:\n"),
            HasSubstr("lockstep train run.txtpb "), HasSubstr("--run-dir run")));
  EXPECT_THAT(told([](int rank) {
                return fmt::format(
                    "SLURM_JOB_ID={} SLURM_STEP_ID=0 SLURM_PROCID={} SLURM_NTASKS=2 "
                    "SLURM_LOCALID={} SLURM_NODEID=0 SLURM_NNODES=1 "
                    "SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=localhost",
                    ::getpid(), rank, rank);
              }),
              AllOf(HasSubstr("To go on:\n  srun -N 1 -n 2 --mpi=none "),
                    HasSubstr("lockstep train run.txtpb "), HasSubstr("--run-dir run")));
}

TEST_F(RendezvousTest, ALostRankEndsTheOthersWithItsName) {
  const uint16_t port = free_port();
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Result> results = all(3, [&](int rank) {
    const std::string lost =
        rank != 1
            ? ""
            : "(until [ -s run/metrics.jsonl ]; do kill -0 $$ || exit; sleep 0.02; done; kill "
              "-9 $$) & ";
    // Each rank in a shell of its own, which becomes the program.
    return fmt::format(
        "sh -c '{}exec env {} \"{}/lockstep\" train run.txtpb --run-dir run --steps "
        "1000000 --set train.batch_size=6'",
        lost, torchrun(rank, 3, port), LOCKSTEP_BIN_DIR);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  EXPECT_EQ(results[1].status, 137);
  for (const int rank : {0, 2}) {
    EXPECT_EQ(results[static_cast<size_t>(rank)].status, 5);
    EXPECT_THAT(results[static_cast<size_t>(rank)].errors, HasSubstr("PeerLostError"));
    EXPECT_THAT(results[static_cast<size_t>(rank)].errors, HasSubstr("rank 1"));
  }
}

TEST_F(RendezvousTest, AStopOfOneRankStopsAllWithEverythingSaved) {
  const uint16_t port = free_port();
  const std::vector<Result> results = all(2, [&](int rank) {
    const std::string stop =
        rank != 1
            ? ""
            : "(until [ -s run/metrics.jsonl ]; do kill -0 $$ || exit; sleep 0.02; done; kill "
              "-TERM $$) & ";
    return fmt::format(
        "sh -c '{}exec env {} \"{}/lockstep\" train run.txtpb --run-dir run --steps "
        "1000000'",
        stop, torchrun(rank, 2, port), LOCKSTEP_BIN_DIR);
  });
  EXPECT_EQ(results[0].status, 75) << results[0].errors;
  EXPECT_THAT(results[0].errors, HasSubstr("everything is saved"));
  EXPECT_EQ(results[1].status, 75) << results[1].errors;
}

TEST_F(RendezvousTest, RanksWithAnotherConfigAreRefused) {
  const uint16_t port = free_port();
  const std::vector<Result> results = all(2, [&](int rank) {
    return train(torchrun(rank, 2, port), fmt::format("--set seed={}", rank));
  });
  for (const Result& result : results) EXPECT_EQ(result.status, 5) << result.errors;
  EXPECT_THAT(results[0].errors, HasSubstr("rank 1 has another config than rank 0"));
}

TEST_F(RendezvousTest, RanksWithAWrongSecretAreRefused) {
  const uint16_t port = free_port();
  const std::vector<Result> results = all(2, [&](int rank) {
    return train(torchrun(rank, 2, port) +
                 fmt::format(" LOCKSTEP_START_LIMIT=8 LOCKSTEP_JOB_SECRET=s{}", rank));
  });
  EXPECT_EQ(results[0].status, 5) << results[0].errors;
  EXPECT_THAT(results[0].errors, HasSubstr("it does not know the secret"));
  EXPECT_EQ(results[1].status, 5) << results[1].errors;
  EXPECT_THAT(results[1].errors, HasSubstr("it does not know the secret"));
}

TEST_F(RendezvousTest, ARankThatDoesNotComeIsNamed) {
  const Result result = shell(train(torchrun(0, 2, free_port()) + " LOCKSTEP_START_LIMIT=1"));
  EXPECT_EQ(result.status, 5);
  EXPECT_THAT(result.errors, HasSubstr("rank 1"));
  EXPECT_THAT(result.errors, HasSubstr("1 s"));
}

TEST_F(RendezvousTest, AnAddressWhereNobodyListensIsToldAndOneThatDoesNotResolveAtOnce) {
  const Result nobody = shell(train(torchrun(1, 2, free_port()) + " LOCKSTEP_START_LIMIT=1"));
  EXPECT_EQ(nobody.status, 5);
  EXPECT_THAT(nobody.errors, HasSubstr("did not reach the store at 127.0.0.1:"));
  const Result unknown =
      run("train run.txtpb --rendezvous no-such-host.invalid:4000 --ranks 2 --rank 1");
  EXPECT_EQ(unknown.status, 5);
  EXPECT_THAT(unknown.errors, HasSubstr("no-such-host.invalid:4000 does not resolve"));
}

TEST_F(RendezvousTest, AHostListedTwiceIsRefused) {
  const uint16_t port = free_port();
  const std::vector<Result> results = all(2, [&](int rank) {
    return train(
        fmt::format("RANK={} WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "
                    "MASTER_ADDR=127.0.0.1 MASTER_PORT={}",
                    rank, port));
  });
  for (const Result& result : results) {
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.errors, HasSubstr("was told of 1 ranks on its host"));
  }
}

TEST_F(RendezvousTest, OptionsThatDoNotGoTogetherAreRefused) {
  EXPECT_EQ(run("train run.txtpb --rank 1").status, 2);
  EXPECT_EQ(run("train run.txtpb --rendezvous nowhere --ranks 2").status, 2);
  const Result outside = run("train run.txtpb --rendezvous 127.0.0.1:4000 --ranks 2 --rank 2");
  EXPECT_EQ(outside.status, 2);
  EXPECT_THAT(outside.errors, HasSubstr("--rank=2 is not less than --ranks=2"));
  const Result nowhere = run("train run.txtpb --ranks 2 --rank 1");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.errors, HasSubstr("does not know where rank 0 is"));
  const Result other = run("train run.txtpb --ranks 3", "RANK=1 WORLD_SIZE=2");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.errors, HasSubstr("contradict each other"));
}

}  // namespace
}  // namespace lockstep::launcher
