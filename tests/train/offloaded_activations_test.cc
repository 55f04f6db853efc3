#include "train/offloaded_activations.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/expect_error.h"
#include "tests/train/measured_peak.h"
#include "tests/train/rank_runs.h"
#include "tests/train/tiny_run.h"
#include "train/run/plan.h"
#include "train/trainer.h"

namespace lockstep::train {
namespace {

/// Blocks whose activations are larger than what stays on the device.
const std::string kLargeActivations =
    "model { gpt2 { context_length: 128 layers: 14 heads: 4 width: 128 } } device: \"host:0\" "
    "train { batch_size: 8 micro_batch_size: 8 } ";

config::RunConfig with_offload(config::RunConfig config) {
  config.mutable_train()->set_offload_activations(true);
  return config;
}

TEST(OffloadedActivations, ChangeNoBit) {
  const TemporaryDirectory folder;
  for (const std::string& more :
       {std::string("model { gpt2 { context_length: 64 layers: 2 heads: 2 width: 64 dropout: 0.1 "
                    "} } train { batch_size: 8 micro_batch_size: 4 }"),
        std::string("precision: BF16_MIXED model { llama { context_length: 64 layers: 2 heads: 2 "
                    "width: 64 } } train { batch_size: 4 }"),
        std::string("model { gpt2 { context_length: 64 layers: 3 heads: 2 width: 64 } "
                    "checkpoint_every: 2 } train { batch_size: 4 }"),
        std::string("model { gpt2 { context_length: 64 layers: 3 heads: 2 width: 64 } "
                    "recompute: CHEAP } train { batch_size: 4 }")}) {
    const config::RunConfig config = tiny_run(folder, more + " device: \"host:0\" ");
    EXPECT_EQ(trace(with_offload(config), 4), trace(config, 4)) << more;
  }
}

TEST(OffloadedActivations, ChangeNoBitOfAShardedRunOnSeveralRanks) {
  const TemporaryDirectory folder;
  const std::string more =
      "reproducibility: BITWISE precision: BF16_MIXED device: \"host:0\" train { batch_size: 8 "
      "micro_batch_size: 1 } model { gpt2 { context_length: 64 layers: 2 heads: 2 width: 64 } } ";
  const auto expected = traces(tiny_run(folder, more), 2, 3);
  for (const char* parallel : {"", "parallel { strategy: FULL_SHARD }",
                               "parallel { strategy: SHARD_GRAD_OP cpu_offload: true }"}) {
    EXPECT_EQ(traces(with_offload(tiny_run(folder, more + parallel)), 2, 3), expected) << parallel;
  }
}

TEST(OffloadedActivations, LeaveTheDeviceAsPlanned) {
  const TemporaryDirectory folder;
  const config::RunConfig all = tiny_run(folder, kLargeActivations);
  const config::RunConfig offloaded = with_offload(all);
  const int64_t peak = measured_peak(all), offloaded_peak = measured_peak(offloaded);
  EXPECT_LT(offloaded_peak, peak * 7 / 10);
  const RunPlan plan = plan_run(offloaded, 1);
  EXPECT_NEAR(static_cast<double>(plan.peak_bytes) / static_cast<double>(offloaded_peak), 1, 0.08);
  EXPECT_EQ(plan_run(all, 1).host_bytes, 0);
  EXPECT_GT(plan.host_bytes, peak - offloaded_peak);
}

TEST(OffloadedActivations, AreRefusedWhereTheDevicesMemoryIsTheHosts) {
  const TemporaryDirectory folder;
  const config::RunConfig config = with_offload(tiny_run(folder, ""));
  expect_error<ConfigError>([&] { Trainer::create(config); }, "train.offload_activations",
                            "got \"cpu\"");
  expect_error<ConfigError>([&] { plan_run(config, 1); }, "train.offload_activations",
                            "got \"cpu\"");
}

}  // namespace
}  // namespace lockstep::train
