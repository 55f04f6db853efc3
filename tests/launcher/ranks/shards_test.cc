// `lockstep checkpoint` on checkpoints in shards, and ranks without a shared file system.

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/launcher/ranks.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::launcher {
namespace {

class ShardsOfRanks : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    if (!IsSkipped()) {
      put_file(folder_ / "run.txtpb",
               "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 32 } }\n"
               "data { random {} }\n"
               "train { steps: 6 batch_size: 8 micro_batch_size: 1 }\n"
               "reproducibility: BITWISE parallel { strategy: FULL_SHARD }\n"
               "checkpoint { every_steps: 3 }\n");
    }
  }
};

TEST_F(ShardsOfRanks, AreListedVerifiedConsolidatedAndConverted) {
  ASSERT_EQ(train(2, "run").status, 0);
  ASSERT_EQ(run("train run.txtpb --run-dir one").status, 0);
  EXPECT_TRUE(says(run("checkpoint ls run").output, "complete, in shards of 2 ranks"));
  EXPECT_TRUE(says(run("checkpoint ls run --json").output, "\"ranks\":2"));
  EXPECT_EQ(run("checkpoint verify run").status, 0);
  const Result compared = run("compare run one");
  EXPECT_EQ(compared.status, 0) << compared.output << compared.errors;

  const Result consolidated = run("checkpoint consolidate run whole");
  ASSERT_EQ(consolidated.status, 0) << consolidated.errors;
  EXPECT_TRUE(file_content(folder_ / "whole/optimizer.safetensors") ==
              file_content(folder_ / "one/checkpoints/step-00000006/optimizer.safetensors"));
  EXPECT_EQ(run("checkpoint verify whole").status, 0);

  ASSERT_EQ(run("checkpoint convert run/checkpoints/step-00000003 hf --to hf").status, 0);
  ASSERT_EQ(run("checkpoint convert one/checkpoints/step-00000003 hf_one --to hf").status, 0);
  EXPECT_TRUE(file_content(folder_ / "hf/model.safetensors") ==
              file_content(folder_ / "hf_one/model.safetensors"));

  std::filesystem::resize_file(
      folder_ / "run/checkpoints/step-00000006/model-00002-of-00002.safetensors", 20);
  const Result damaged = run("checkpoint verify run");
  EXPECT_EQ(damaged.status, 4);
  EXPECT_TRUE(says(damaged.output, "model-00002-of-00002.safetensors"));
  EXPECT_EQ(run("checkpoint consolidate run/checkpoints/step-00000006 never").status, 4);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "never"));
}

TEST_F(ShardsOfRanks, OfARankThatDoesNotSeeTheFolderAreWrittenByRank0) {
  if (shell("unshare -m true").status != 0) GTEST_SKIP() << "no mount namespaces here";
  ASSERT_EQ(run("train run.txtpb --run-dir one").status, 0);
  // Rank 1 sees an empty folder in place of the run's.
  std::filesystem::create_directory(folder_ / "run");
  const std::string command =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exec unshare -m sh -c \"mount --make-rprivate / && "
      "mount -t tmpfs none run && exec \\\"$0\\\" train run.txtpb --run-dir run\"; else exec "
      "\"$0\" "
      "train run.txtpb --run-dir run; fi";
  for (const char* variables : {"", "LOCKSTEP_CHECKPOINT_ASYNCHRONOUS=true"}) {
    const Result trained = on_ranks(2, command, variables);
    ASSERT_EQ(trained.status, 0) << trained.errors;
    const auto entries = train::list_checkpoints(folder_ / "run/checkpoints");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries.back().ranks, 2);
    EXPECT_EQ(run("checkpoint verify run").status, 0);
    EXPECT_EQ(run("compare run one").status, 0);
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::create_directory(folder_ / "run");
  }
}

TEST_F(ShardsOfRanks, APickledCheckpointOfPyTorchIsRefusedByName) {
  std::filesystem::create_directory(folder_ / "dcp");
  put_file(folder_ / "dcp/.metadata", "pickle");
  put_file(folder_ / "dcp/__0_0.distcp", "pickle");
  put_config("from.txtpb");
  const Result refused = run("train from.txtpb --run-dir from --set model.weights=dcp");
  EXPECT_EQ(refused.status, 4);
  EXPECT_TRUE(says(refused.errors, "torch.distributed.checkpoint")) << refused.errors;
}

}  // namespace
}  // namespace lockstep::launcher
