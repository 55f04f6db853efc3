// Training on the host device: the programming model of a GPU, the bits of the cpu.

#include <gtest/gtest.h>

#include "core/allocator.h"
#include "core/ops/copy.h"
#include "core/waits.h"
#include "tests/train/tiny_run.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace lockstep::train {
namespace {

config::RunConfig on_host(const TemporaryDirectory& folder, const std::string& more = "") {
  return tiny_run(folder, "device: \"host:0\" " + more);
}

TEST(HostDevice, TrainingGivesTheBitsOfTheCpu) {
  const TemporaryDirectory folder;
  for (const char* change :
       {"", "train { micro_batch_size: 2 leaves: 2 }", "optimizer { sgd { momentum: 0.9 } }",
        "model { checkpoint_every: 1 }", "precision: BF16_MIXED", "precision: F16_MIXED"}) {
    EXPECT_EQ(trace(tiny_run(folder, change), 4), trace(on_host(folder, change), 4)) << change;
  }
}

TEST(HostDevice, ParametersAndGradientsLiveOnIt) {
  const TemporaryDirectory folder;
  Trainer trainer(on_host(folder));
  trainer.step();
  const Device host = parse_device("host:0");
  EXPECT_EQ(trainer.device(), host);
  for (const Tensor& parameter : trainer.task().model().parameters()) {
    EXPECT_EQ(parameter.device(), host);
    EXPECT_EQ(parameter.grad().device(), host);
  }
  EXPECT_GT(allocator(host).stats().allocated, 0);
}

TEST(HostDevice, AStepHasNoHiddenWait) {
  const TemporaryDirectory folder;
  Trainer trainer(on_host(folder, "train { micro_batch_size: 2 }"));
  for (int i = 0; i < 3; ++i) trainer.step();
  const int64_t before = hidden_waits();
  for (int i = 0; i < 5; ++i) trainer.step();
  EXPECT_EQ(hidden_waits(), before);
}

TEST(HostDevice, SteadyStepsMakeNoDriverCall) {
  const TemporaryDirectory folder;
  Trainer trainer(on_host(folder));
  for (int i = 0; i < 3; ++i) trainer.step();
  const MemoryStats before = allocator(trainer.device()).stats();
  for (int i = 0; i < 5; ++i) trainer.step();
  const MemoryStats after = allocator(trainer.device()).stats();
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.system_calls, before.system_calls);
}

TEST(HostDevice, EvaluationGivesTheLossOfTheCpu) {
  const TemporaryDirectory folder;
  Trainer cpu(tiny_run(folder));
  Trainer host(on_host(folder));
  EXPECT_EQ(cpu.evaluate(0)->loss, host.evaluate(0)->loss);
  EXPECT_EQ(cpu.task().sample_text(20, 3), host.task().sample_text(20, 3));
}

TEST(HostDevice, ACheckpointMovesBetweenDevices) {
  const TemporaryDirectory folder;
  Trainer host(on_host(folder));
  for (int i = 0; i < 2; ++i) host.step();
  const std::filesystem::path saved = save_checkpoint(folder / "checkpoints", host, "");
  Trainer cpu(tiny_run(folder));
  restore(cpu, saved, verify_checkpoint(saved));
  EXPECT_EQ(trace(cpu, 2), trace(host, 2));
}

TEST(HostDevice, AnIndexThatDoesNotExistIsAConfigError) {
  const TemporaryDirectory folder;
  EXPECT_THROW(Trainer(tiny_run(folder, "device: \"host:15\"")), ConfigError);
}

}  // namespace
}  // namespace lockstep::train
