// Training on every device: losses agree with the CPU, and asynchronous steps do not wait.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/device/waits.h"
#include "core/ops/factory/copy.h"
#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/device/every_device.h"
#include "tests/train/rank_runs.h"
#include "tests/train/report/well_formed_xml.h"
#include "tests/train/tiny_run.h"
#include "train/compiled_blocks.h"
#include "train/run/checkpoint.h"
#include "train/trainer.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

class TrainingDevice : public EveryDevice {
 protected:
  /// An emulated GPU takes its time for each sample.
  static constexpr const char* kBatch = "train { batch_size: 4 }";

  config::RunConfig run(const std::string& more = "") const {
    return run_of_layers(folder_,
                         {kBatch, fmt::format("device: \"{}\" {}", to_string(device()), more)});
  }
  config::RunConfig run_on_cpu(const std::string& more = "") const {
    return run_of_layers(folder_, {kBatch, more});
  }
  void expect_like_the_cpu(double got, double expected, double tolerance) const {
    if (has_bits_of_the_cpu()) {
      EXPECT_EQ(got, expected);
    } else {
      EXPECT_NEAR(got, expected, tolerance * std::abs(expected));
    }
  }

  TemporaryDirectory folder_;
};
INSTANTIATE_TEST_SUITE_P(Devices, TrainingDevice, kEveryDevice, name_of_device);

TEST_P(TrainingDevice, LossesAndNormsAreTheCpus) {
  const int steps = has_bits_of_the_cpu() ? 4 : 2;
  for (const char* change :
       {"", "train { micro_batch_size: 2 leaves: 2 }", "optimizer { sgd { momentum: 0.9 } }",
        "model { recompute: BLOCK }", "model { recompute: CHEAP }", "precision: BF16_MIXED",
        "precision: F16_MIXED"}) {
    SCOPED_TRACE(change);
    const Trace here = trace(run(change), steps);
    const Trace expected = trace(run_on_cpu(change), steps);
    const bool is_mixed = std::string(change).starts_with("precision");
    for (size_t i = 0; i < expected.losses.size(); ++i) {
      expect_like_the_cpu(here.losses[i], expected.losses[i], is_mixed ? 1e-2 : 1e-4);
      expect_like_the_cpu(here.norms[i], expected.norms[i], is_mixed ? 3e-2 : 1e-3);
    }
    EXPECT_TRUE(!has_bits_of_the_cpu() || here.weights == expected.weights);
  }
}

TEST_P(TrainingDevice, CompiledBlocksChangeNoBit) {
  for (const char* change : {"", "precision: BF16_MIXED train { micro_batch_size: 2 }"}) {
    for (const double budget : {1.0, 0.4}) {
      SCOPED_TRACE(fmt::format("{} {}", change, budget));
      Trainer compiled = Trainer::create(
          run(fmt::format("{} compile {{ enabled: true activation_budget: {} }}", change, budget)));
      Trainer plain = Trainer::create(run(change));
      const Trace got = trace(compiled, 2), expected = trace(plain, 2);
      EXPECT_EQ(got.losses, expected.losses);
      EXPECT_TRUE(got.weights == expected.weights);
      EXPECT_GT(compiled.compiled_blocks()->counts().replayed, 0);
      EXPECT_EQ(compiled.compiled_blocks()->counts().eager, 0);
    }
  }
}

TEST_P(TrainingDevice, ParametersAndGradientsLiveOnIt) {
  Trainer trainer = Trainer::create(run());
  trainer.step();
  EXPECT_EQ(trainer.device(), device());
  for (const Tensor& parameter : trainer.task().model().parameters()) {
    EXPECT_EQ(parameter.device(), device());
    EXPECT_EQ(parameter.grad().device(), device());
  }
  EXPECT_GT(allocator(device()).stats().allocated, 0);
}

TEST_P(TrainingDevice, AStepHasNoHiddenWait) {
  Trainer trainer = Trainer::create(run("train { micro_batch_size: 2 }"));
  for (int i = 0; i < 3; ++i) trainer.step();
  const int64_t before = hidden_waits();
  for (int i = 0; i < 4; ++i) trainer.step();
  for (int i = 0; i < 4; ++i) trainer.step(/*another=*/true);
  EXPECT_EQ(hidden_waits(), before);
}

TEST_P(TrainingDevice, BeginningTheNextStepEarlyChangesNoBit) {
  // The scale starts too large, is halved by overflows, then grows and overflows again.
  const GradScalerState too_large{.scale = 0x1p13, .growth_interval = 1};
  for (const char* change : {"train { micro_batch_size: 2 leaves: 2 }", "precision: F16_MIXED"}) {
    const auto story = [&](bool ahead) {
      Trainer trainer = Trainer::create(run(change));
      if (trainer.scaler().is_enabled()) trainer.scaler().load_state(too_large);
      std::string told;
      for (int i = 0; i < 6; ++i) {
        const StepResult step = trainer.step(ahead && i < 5);
        told += fmt::format("{} {} {} {} {}\n", step.loss, step.grad_norm, step.learning_rate,
                            step.loss_scale, step.outcome.overflowed);
      }
      EXPECT_LE(trainer.optimizer().steps(), trainer.scaler().is_enabled() ? 5 : 6);
      EXPECT_GT(trainer.optimizer().steps(), 0);
      return told + trace(trainer, 0).weights;
    };
    EXPECT_TRUE(story(true) == story(false)) << change;
  }
}

TEST_P(TrainingDevice, AStepThatIsNotFiniteUpdatesNothing) {
  Trainer trainer = Trainer::create(run());
  const Tensor broken = trainer.task().model().parameters().back();
  broken.detach().fill_(std::numeric_limits<double>::quiet_NaN());
  const std::string before = trace(trainer, 0).weights;
  const StepResult step = trainer.step(/*another=*/true);
  EXPECT_FALSE(step.outcome.finite);
  EXPECT_THAT(step.non_finite, HasSubstr("itself holds"));
  trainer.step();  // completes the step that was begun early
  EXPECT_TRUE(trace(trainer, 0).weights == before);
  EXPECT_EQ(trainer.optimizer().steps(), 0);
}

TEST_P(TrainingDevice, SteadyStepsMakeNoDriverCall) {
  Trainer trainer = Trainer::create(run());
  for (int i = 0; i < 3; ++i) trainer.step();
  const MemoryStats before = allocator(device()).stats();
  for (int i = 0; i < 5; ++i) trainer.step();
  const MemoryStats after = allocator(device()).stats();
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.system_calls, before.system_calls);
}

TEST_P(TrainingDevice, EvaluationGivesTheLossOfTheCpu) {
  Trainer cpu = Trainer::create(run_on_cpu());
  Trainer here = Trainer::create(run());
  expect_like_the_cpu(here.evaluate(0)->loss, cpu.evaluate(0)->loss, 1e-5);
  if (has_bits_of_the_cpu()) {
    EXPECT_EQ(cpu.task().sample_text(20, 3), here.task().sample_text(20, 3));
  }
}

TEST_P(TrainingDevice, ACheckpointMovesToTheCpu) {
  Trainer here = Trainer::create(run());
  for (int i = 0; i < 2; ++i) here.step();
  const std::filesystem::path saved = save_checkpoint(folder_ / "checkpoints", here, "");
  Trainer cpu = Trainer::create(run_on_cpu());
  restore(cpu, saved, verify_checkpoint(saved));
  const Trace there = trace(cpu, 2);
  const Trace gone_on = trace(here, 2);
  for (size_t i = 0; i < 2; ++i) expect_like_the_cpu(gone_on.losses[i], there.losses[i], 1e-4);
  EXPECT_TRUE(!has_bits_of_the_cpu() || gone_on.weights == there.weights);
}

TEST_P(TrainingDevice, ARunOfSeveralRanksReportsHowCommunicationHidBehindIt) {
  const config::RunConfig config =
      run("train { steps: 6 } parallel { bucket_mib: 0.01 first_bucket_mib: 0.002 } "
          "model { gpt2 { width: 8 } }");
  for (const auto& error : run_on_ranks(config, folder_, 2)) rethrow_first({error});
  const auto json = nlohmann::json::parse(file_content(folder_ / "run/overlap.json"));
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_GE(json["steps"], 5) << "the first may have had other buckets";
  EXPECT_GE(json["step_ms"], json["exposed_comm_ms"]);
  EXPECT_GT(json["buckets"].size(), 2U);
  int64_t bytes = 0;
  double done = 0;
  double exposed = 0;
  for (const auto& bucket : json["buckets"]) {
    EXPECT_FALSE(bucket["first"].get<std::string>().empty());
    exposed += bucket["exposed_ms"].get<double>();
    bytes += bucket["bytes"].get<int64_t>();
    EXPECT_GT(bucket["ready_ms"], 0);
    EXPECT_GE(bucket["launched_ms"], bucket["ready_ms"]);
    EXPECT_GT(bucket["done_ms"], bucket["launched_ms"]);
    EXPECT_GE(bucket["all_ready_ms"], bucket["ready_ms"]);
    done = std::max(done, bucket["done_ms"].get<double>());
  }
  EXPECT_EQ(json["reduced_bytes"], bytes);
  EXPECT_LT(json["gradient_bytes"], bytes) << "the gaps between gradients are no gradients";
  EXPECT_LT(json["rank"], 2);
  EXPECT_NEAR(exposed, json["exposed_comm_ms"].get<double>(), 1e-9);
  EXPECT_LE(done, json["step_ms"].get<double>());
  const std::string chart = file_content(folder_ / "run/overlap.svg");
  EXPECT_THAT(chart, HasSubstr("2 ranks"));
  expect_well_formed_xml(chart);
}

TEST(DeviceOfARun, AnIndexThatDoesNotExistIsAConfigError) {
  const TemporaryDirectory folder;
  expect_error<ConfigError>([&] { Trainer::create(tiny_run(folder, "device: \"host:15\"")); },
                            "[device] ", "host:15");
}

}  // namespace
}  // namespace lockstep::train
