// Trainer::step on an asynchronous device when the next step was begun early.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "autograd/hooks.h"
#include "core/device/waits.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"
#include "tests/train/poisoned_task.h"
#include "tests/train/rank_runs.h"
#include "tests/train/step_story.h"
#include "tests/train/table_run.h"
#include "train/report/metrics_history.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

constexpr const char* kOnHost = "device: \"host:0\" ";
constexpr const char* kF16 = "precision: F16_MIXED ";

/// Results of `steps` steps and the final state. Each step begins the next one where possible.
std::string story(Trainer& trainer, int steps) {
  std::string text;
  for (int i = 0; i < steps; ++i) text += text_of(trainer.step(i + 1 < steps));
  return text + state_on_cpu(trainer);
}

TEST(StepAhead, EveryStepCountsTheBytesThatItSends) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, std::string(kOnHost) + "parallel { bucket_mib: 1 first_bucket_mib: 1 }");
  constexpr int kSteps = 6;
  const auto sent_by_first_rank = [&](bool ahead) {
    const auto sent = trained_on_ranks(config, 2, [&](Trainer& trainer) {
      int64_t bytes = 0;
      for (int i = 0; i < kSteps; ++i) {
        const int64_t of_step = trainer.step(ahead && i + 1 < kSteps).sent_bytes;
        if (!ahead) {
          EXPECT_GT(of_step, 1000) << "step " << i;
        }
        bytes += of_step;
      }
      return bytes;
    });
    return static_cast<double>(sent[0]);
  };
  // Gradients, and small numbers beside them. A sum of the next step may come early and count for
  // the one before, so that only all steps together send what they send one after the other.
  const double in_turn = sent_by_first_rank(false);
  EXPECT_NEAR(sent_by_first_rank(true) / in_turn, 1, 0.05);
}

TEST(StepAhead, ChangesNoBit) {
  const TemporaryDirectory folder;
  for (const std::string& change :
       {std::string("train { micro_batch_size: 2 leaves: 2 } schedule { warmup_steps: 3 }"),
        std::string("optimizer { sgd { momentum: 0.9 } clip_grad_norm: 0 }"),
        std::string("optimizer { optimizer_in_backward: true clip_grad_norm: 0 }"),
        std::string("precision: BF16_MIXED"), tiny_resnet(folder)}) {
    Trainer cpu = Trainer::create(tiny_run(folder, change));
    Trainer host = Trainer::create(tiny_run(folder, kOnHost + change));
    EXPECT_TRUE(story(host, 6) == story(cpu, 6)) << change;
  }
}

TEST(StepAhead, OverflowsMoveScaleAndScheduleAsOnTheCpu) {
  const TemporaryDirectory folder;
  const std::string change = std::string(kF16) + "schedule { warmup_steps: 10 }";
  // Steps are skipped until the scale is low enough; it then grows, and some overflow again.
  const GradScalerState start{.scale = 0x1p24, .growth_interval = 2};
  Trainer cpu = Trainer::create(tiny_run(folder, change));
  Trainer host = Trainer::create(tiny_run(folder, kOnHost + change));
  cpu.scaler().load_state(start);
  host.scaler().load_state(start);
  const std::string want = story(cpu, 30);
  EXPECT_TRUE(story(host, 30) == want);
  EXPECT_GT(cpu.optimizer().steps(), 0);
  EXPECT_LT(cpu.optimizer().steps(), 25);
}

TEST(StepAhead, RanksTakeTheStepsOfTheCpu) {
  const TemporaryDirectory folder;
  const std::string change =
      tiny_resnet(folder) + "reproducibility: BITWISE train { micro_batch_size: 1 }";
  Trainer cpu = Trainer::create(tiny_run(folder, change));
  const std::string want = story(cpu, 5);
  for (const std::string& each :
       trained_on_ranks(tiny_run(folder, kOnHost + change), 2,
                        [&](Trainer& trainer) { return story(trainer, 5); })) {
    EXPECT_TRUE(each == want);
  }
}

/// Blocks the current stream until `promise` is set. The result is false after 20 s.
std::future<bool> hold_stream(Device device, std::shared_future<void> promise) {
  auto in_time = std::make_shared<std::promise<bool>>();
  current_stream(device).add_callback([promise, in_time] {
    in_time->set_value(promise.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  });
  return in_time->get_future();
}

/// Checks that `trainer` queues the rest of a step and the whole backward of the next one while the
/// device is blocked.
void expect_no_wait(Trainer& trainer) {
  for (int i = 0; i < 4; ++i) trainer.step(true);
  const int64_t waits = hidden_waits();
  for (int i = 0; i < 3; ++i) {
    std::promise<void> queued;
    std::future<bool> in_time = hold_stream(trainer.device(), queued.get_future().share());
    int left = static_cast<int>(trainer.task().model().parameters().size());
    std::vector<HookHandle> hooks;
    for (const Tensor& parameter : trainer.task().model().parameters()) {
      hooks.push_back(register_post_accumulate_grad_hook(parameter, [&](const Tensor&) {
        if (--left == 0) queued.set_value();
      }));
    }
    trainer.step(true);
    EXPECT_TRUE(in_time.get()) << "a step waited for the device";
    for (HookHandle& hook : hooks) hook.remove();
  }
  EXPECT_EQ(hidden_waits(), waits);
}

TEST(StepAhead, NothingWaitsForTheDeviceUntilTheNextBackwardIsQueued) {
  const TemporaryDirectory folder;
  for (const std::string& change :
       {std::string(), std::string(kF16), "optimizer { sgd {} }" + tiny_resnet(folder)}) {
    Trainer trainer = Trainer::create(tiny_run(folder, kOnHost + change));
    expect_no_wait(trainer);
  }
}

TEST(StepAhead, NorDoRanksWait) {
  const TemporaryDirectory folder;
  (void)trained_on_ranks(tiny_run(folder, kOnHost), 2, [](Trainer& trainer) {
    expect_no_wait(trainer);
    return 0;
  });
}

/// state_on_cpu and the position of the random number generator.
std::string all_state(Trainer& trainer) {
  const RandomKey next = default_generator().state();
  return state_on_cpu(trainer) + fmt::format(" {} {} {}", next.step, next.micro_batch, next.call);
}

TEST(StepAhead, IsGivenUpWithoutATrace) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, kOnHost + tiny_resnet(folder));
  Trainer plain = Trainer::create(config);
  plain.step();
  const std::string after_one = all_state(plain);
  const double held_out = plain.evaluate(0)->loss;
  plain.step();
  const std::string after_two = all_state(plain);

  Trainer ahead = Trainer::create(config);
  ahead.step(true);
  EXPECT_FALSE(all_state(ahead) == after_one) << "running statistics have moved on";
  const auto saved = save_checkpoint(folder / "checkpoints", ahead, "");
  EXPECT_TRUE(all_state(ahead) == after_one);
  EXPECT_EQ(ahead.steps_done(), 1);
  EXPECT_EQ(ahead.evaluate(0)->loss, held_out);
  ahead.step(true);
  ahead.give_up_next();
  EXPECT_TRUE(all_state(ahead) == after_two);
  // Restoring discards the step begun early; the restored state stays.
  ahead.step(true);
  restore(ahead, saved, verify_checkpoint(saved));
  EXPECT_TRUE(all_state(ahead) == after_one);
  ahead.step();
  EXPECT_TRUE(all_state(ahead) == after_two);
}

TEST(StepAhead, AStateSavedAfterASkippedStepGoesOnAsTheRunDid) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, std::string(kOnHost) + kF16);
  Trainer whole = Trainer::create(config);
  whole.scaler().load_state({.scale = 0x1p22, .growth_interval = 2});
  ASSERT_TRUE(whole.step(true).outcome.overflowed);
  ASSERT_TRUE(whole.step(true).outcome.overflowed);
  const auto saved = save_checkpoint(folder / "checkpoints", whole, "");
  EXPECT_EQ(verify_checkpoint(saved).optimizer_steps, 0);
  EXPECT_EQ(verify_checkpoint(saved).grad_scaler->scale, 0x1p20);
  Trainer resumed = Trainer::create(config);
  restore(resumed, saved, verify_checkpoint(saved));
  EXPECT_TRUE(story(resumed, 12) == story(whole, 12));
  EXPECT_GT(whole.optimizer().steps(), 0);
}

/// Fails in one batch, a given number of times.
class FailingTask final : public ForwardingTask {
 public:
  FailingTask(std::unique_ptr<Task> task, int64_t batch, int times)
      : ForwardingTask(std::move(task)), batch_(batch), times_(times) {}

  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    // By then, forward has updated the running statistics.
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    if (batch == batch_ && --times_ >= 0) throw DataError("the batch cannot be read");
    return loss;
  }

 private:
  int64_t batch_;
  int times_;
};

TEST(StepAhead, AStepThatFailsThrowsWhenItIsItsTurn) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, kOnHost + tiny_resnet(folder));
  Trainer plain = Trainer::create(config);
  const std::string want = story(plain, 4);
  Trainer trainer =
      Trainer::create(config, std::make_unique<FailingTask>(build_task(config), 2, 1));
  std::string got = text_of(trainer.step(true));
  got += text_of(trainer.step(true));
  EXPECT_EQ(trainer.steps_done(), 2);
  // The failed step was only begun early: it must have changed nothing.
  trainer.give_up_next();
  got += story(trainer, 2);
  EXPECT_TRUE(got == want);

  Trainer failing =
      Trainer::create(config, std::make_unique<FailingTask>(build_task(config), 2, 1));
  for (int i = 0; i < 2; ++i) failing.step(true);
  EXPECT_THROW(failing.step(true), DataError);
  EXPECT_EQ(failing.steps_done(), 2);
}

TEST(StepAhead, AStepThatIsNotFiniteIsFoundAndLeftOutAsOnTheCpu) {
  const TemporaryDirectory folder;
  for (const std::string& change :
       {std::string("train { micro_batch_size: 2 }"), tiny_resnet(folder)}) {
    for (const bool gradient : {false, true}) {
      std::vector<std::string> stories;
      for (const char* device : {"", kOnHost}) {
        const config::RunConfig config = tiny_run(folder, device + change);
        Trainer trainer = Trainer::create(
            config, std::make_unique<PoisonedTask>(build_task(config), 2, gradient));
        stories.push_back(story(trainer, 6));
      }
      EXPECT_TRUE(stories[1] == stories[0]) << change;
      EXPECT_TRUE(says(stories[1], gradient ? "gradient of" : "loss is NaN"));
    }
  }
}

class RunAheadTest : public testing::Test {
 protected:
  /// Runs 12 steps, of which batch 5 has NaN gradients. Returns the error.
  std::string run(const std::string& name, const std::string& config_text, const std::string& train,
                  const StopRequest& stop = {}) {
    const config::RunConfig config =
        tiny_run(folder_, config_text + "train { steps: 12 " + train + " }");
    TrainingRun run(config,
                    RunDirectory::create_at(folder_ / name, RunDirectory::Existing::kContinue),
                    "{}", std::make_unique<PoisonedTask>(build_task(config), 5, true));
    std::FILE* const nowhere = std::fopen("/dev/null", "w");
    std::string thrown;
    try {
      run.run({.terminal = nowhere, .stop = stop});
    } catch (const NonFiniteError& error) {
      thrown = error.what();
    }
    std::fclose(nowhere);
    return thrown.substr(0, thrown.find("the state before"));
  }
  /// The steps in metrics.jsonl without times and memory, and the newest checkpoint's contents.
  std::string left_by(const std::string& name) {
    std::string text;
    for (const MetricsRecord& record : read_metrics(folder_ / name)) {
      text += fmt::format("{} {} {} {}\n", record.step, *record.loss, *record.grad_norm,
                          record.val_loss.value_or(-1));
    }
    const CheckpointManifest manifest = manifest_of(name);
    text += fmt::format("{} {} {}", manifest.position.step, manifest.position.batch,
                        manifest.optimizer_steps);
    return text + file_content(newest(name) / "model.safetensors") +
           file_content(newest(name) / "optimizer.safetensors");
  }
  std::filesystem::path newest(const std::string& name) {
    return list_checkpoints(folder_ / name / "checkpoints").back().path;
  }
  CheckpointManifest manifest_of(const std::string& name) {
    return verify_checkpoint(newest(name));
  }

  TemporaryDirectory folder_;
};

TEST_F(RunAheadTest, PoliciesEndOrGoOnAsOnTheCpu) {
  for (const std::string policy : {"STOP", "SKIP", "ROLLBACK"}) {
    const std::string train = "eval_every: 5 eval_batches: 1 non_finite: " + policy;
    const std::string every = policy == "ROLLBACK" ? "checkpoint { every_steps: 4 } " : "";
    const std::string thrown = run("cpu" + policy, every, train);
    EXPECT_EQ(run("host" + policy, kOnHost + every, train), thrown);
    EXPECT_EQ(thrown.empty(), policy != "STOP");
    EXPECT_TRUE(left_by("host" + policy) == left_by("cpu" + policy)) << policy;
  }
}

TEST_F(RunAheadTest, StopsAndGoesOnWithTheBitsOfAWholeRun) {
  const std::string more = kOnHost + tiny_resnet(folder_);
  run("whole", more, "non_finite: SKIP");
  for (int stops = 0; stops < 2; ++stops) {
    int asked = 0;
    run("parts", more, "non_finite: SKIP", [&] { return ++asked > 6; });
    EXPECT_LT(manifest_of("parts").position.step, 12);
  }
  run("parts", more, "non_finite: SKIP");
  EXPECT_TRUE(left_by("parts") == left_by("whole"));
}

}  // namespace
}  // namespace lockstep::train
