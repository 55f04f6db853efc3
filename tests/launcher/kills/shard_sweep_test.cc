// Ranks that save together, of which one is killed, or finds its disk full, at any call on the
// files of a checkpoint: the newest complete checkpoint loads, and no other.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/exit_code.h"
#include "tests/launcher/faults/file_faults.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::launcher {
namespace {

constexpr int kRanks = 2;

class ShardSweep : public FileFaults {
 protected:
  void SetUp() override {
    FileFaults::SetUp();
    if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
    put_file(folder_ / "run.txtpb",
             "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 32 } }\n"
             "data { random {} }\n"
             "train { steps: 6 batch_size: 8 micro_batch_size: 1 }\n"
             "reproducibility: BITWISE parallel { strategy: FULL_SHARD }\n"
             "checkpoint { every_steps: 3 keep_last: 2 }\n");
  }
  /// Trains on all ranks, rank `rank` under `variables`.
  Result train_ranks(int rank, const std::string& variables, const std::string& more = "") const {
    return shell(fmt::format(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 100 mpirun "
        "--oversubscribe --bind-to none -np {} sh -c \"if [ \\$OMPI_COMM_WORLD_RANK = {} ]; then "
        "export {}; fi; exec '{}/lockstep' train run.txtpb --run-dir run {}\"",
        kRanks, rank, variables, LOCKSTEP_BIN_DIR, more));
  }
  /// The calls of one rank on files of checkpoints, in a run without faults.
  std::vector<FileCall> calls_of(int rank) {
    EXPECT_EQ(train_ranks(rank, counting("run/checkpoints")).status, 0);
    const std::vector<FileCall> calls = file_calls();
    std::filesystem::remove_all(folder_ / "run");
    return calls;
  }
  /// Every checkpoint that is complete by its manifest is whole, and one rank that goes on ends
  /// with the weights of a run without faults.
  void expect_repaired(const std::string& what) const {
    for (const train::CheckpointEntry& entry :
         train::list_checkpoints(folder_ / "run/checkpoints")) {
      if (!entry.complete) continue;
      EXPECT_NO_THROW(train::verify_checkpoint(entry.path)) << what;
    }
    const Result resumed = run("train run.txtpb --run-dir run");
    ASSERT_EQ(resumed.status, 0) << what << "\n" << resumed.errors;
    EXPECT_TRUE(file_content(folder_ / "run/model.safetensors") == expected_) << what;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run/checkpoints")) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".partial")) << what;
    }
    std::filesystem::remove_all(folder_ / "run");
  }
  void train_without_faults() {
    ASSERT_EQ(run("train run.txtpb --run-dir whole").status, 0);
    expected_ = file_content(folder_ / "whole/model.safetensors");
  }

  std::string expected_;
};

/// The calls that change the second of two saves: the first is like it, but has none to fall back
/// on.
std::vector<FileCall> changes_of_second_save(std::vector<FileCall> calls) {
  std::erase_if(calls, [](const FileCall& call) {
    const bool second = call.path.find("step-00000006") != call.path.npos;
    const bool changes = call.name == "write" || call.name.starts_with("rename") ||
                         call.name == "fsync" || call.name == "fdatasync";
    return !second || !changes;
  });
  return without_middle_writes(calls);
}

class ShardSweepOfRank : public ShardSweep, public testing::WithParamInterface<int> {};

TEST_P(ShardSweepOfRank, NothingIsLostWhereverItIsKilled) {
  train_without_faults();
  const int rank = GetParam();
  const std::vector<FileCall> calls = changes_of_second_save(calls_of(rank));
  ASSERT_GE(calls.size(), 6u);
  for (const FileCall& call : calls) {
    const std::string what =
        fmt::format("rank {}: {} {} {}", rank, call.number, call.name, call.path);
    EXPECT_NE(train_ranks(rank, faults("run/checkpoints", call.number, "kill")).status, 0) << what;
    expect_repaired(what);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShardSweepOfRank, testing::Range(0, kRanks));

TEST_F(ShardSweep, AWriteOfOneRankThatFailsEndsTheRunAndIsNamed) {
  train_without_faults();
  const std::string asynchronous = "--set checkpoint.asynchronous=true";
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::vector<FileCall> calls = calls_of(rank);
    const std::string file = fmt::format("optimizer-0000{}-of-0000{}", rank + 1, kRanks);
    const int64_t at = find_call(calls, "write", file);
    ASSERT_GT(at, 0);
    const std::pair<const char*, const char*> full{"enospc", "No space left on device"};
    const std::pair<const char*, const char*> refused{"eacces", "Permission denied"};
    for (const std::string& more : {std::string(), asynchronous}) {
      const auto& [error, text] = (rank == 0) == more.empty() ? full : refused;
      const Result result = train_ranks(rank, faults("run/checkpoints", at, error), more);
      EXPECT_EQ(result.status, kCheckpoint) << result.errors;
      EXPECT_TRUE(says(result.errors, file)) << result.errors;
      EXPECT_TRUE(says(result.errors, text)) << result.errors;
      EXPECT_TRUE(train::list_checkpoints(folder_ / "run/checkpoints").empty());
      EXPECT_TRUE(train::partial_checkpoints(folder_ / "run/checkpoints").empty());
      expect_repaired(file);
    }
  }
}

}  // namespace
}  // namespace lockstep::launcher
