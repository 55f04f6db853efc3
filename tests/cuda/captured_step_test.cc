// compile.cuda_graphs: the passes of a training step, and its update, as CUDA graphs.

#include "train/captured_step.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/mirrored_rank.h"
#include "tests/emulation/queued_work.h"
#include "tests/train/step_story.h"
#include "tests/train/table_run.h"
#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Results of `steps` steps; those that were replayed are added to `replayed`.
std::string story(Trainer& trainer, int steps, std::vector<int64_t>* replayed = nullptr,
                  bool ahead = true) {
  std::string text;
  for (int i = 0; i < steps; ++i) {
    const StepResult step = trainer.step(ahead && i + 1 < steps);
    text += all_of(step);
    if (step.replayed && replayed != nullptr) replayed->push_back(step.step);
  }
  return text + state_on_cpu(trainer);
}

/// What is added to a small run on the GPU.
std::string small_run(const std::string& change) {
  return std::string(kOnGpu) +
         "model { gpt2 { layers: 1 } } train { batch_size: 4 micro_batch_size: 4 } " + change;
}

/// Trains with CUDA graphs and without, and expects the same story.
void expect_no_change(const std::string& change, const std::string& more) {
  const TemporaryDirectory folder;
  const std::string model = more == "resnet" ? tiny_resnet(folder) : more;
  Trainer plain = Trainer::create(layered_run(folder, small_run(change) + model));
  Trainer graphs = Trainer::create(layered_run(folder, small_run(change) + model + kGraphs));
  std::vector<int64_t> replayed;
  EXPECT_TRUE(story(graphs, 7, &replayed) == story(plain, 7));
  EXPECT_THAT(replayed, ElementsAre(4, 5, 6));
  EXPECT_THAT(graphs.compile_reasons(), Not(Contains(HasSubstr("CUDA graph"))));
}

TEST(CapturedStep, ChangesNoBitOfSeveralMicroBatches) {
  expect_no_change("train { micro_batch_size: 1 leaves: 2 } schedule { warmup_steps: 3 } ", "");
  expect_no_change("precision: BF16_MIXED train { micro_batch_size: 2 leaves: 1 } ", "");
}

TEST(CapturedStep, ChangesNoBitOfOtherUpdates) {
  expect_no_change("optimizer { sgd { momentum: 0.9 } clip_grad_norm: 0 } ", "");
  expect_no_change("optimizer { lion {} } train { weight_average { decay: 0.9 } } ", "");
  expect_no_change("train { loss_spike { action: SKIP z: 0.3 window: 3 } } ", "");
}

TEST(CapturedStep, ChangesNoBitOfOtherModels) {
  expect_no_change(
      "", "model { llama { context_length: 16 layers: 1 heads: 2 kv_heads: 1 width: 16 } } ");
  expect_no_change("", "resnet");
}

TEST(CapturedStep, ChangesNoBitOfOtherPasses) {
  expect_no_change("compile { enabled: true kernels: false } ", "");
  expect_no_change("model { recompute: BLOCK } ", "");
  expect_no_change("train { loss { label_smoothing: 0.1 } } ", "");
}

TEST(CapturedStep, IsTwoLaunchesAndCopies) {
  if (!is_emulated()) GTEST_SKIP() << "a real GPU counts nothing";
  const TemporaryDirectory folder;
  const auto launches = [&](int layers) {
    Trainer trainer = Trainer::create(tiny_run(
        folder, fmt::format("{} {} model {{ gpt2 {{ layers: {} }} }}", kOnGpu, kGraphs, layers)));
    for (int i = 0; i < 5; ++i) trainer.step();
    emulation::QueuedWork work;
    EXPECT_TRUE(trainer.step().replayed);
    return work.take();
  };
  const emulation::QueuedWork::Counts of_one = launches(1);
  EXPECT_EQ(of_one.at("graph"), 2) << "passes and update";
  EXPECT_EQ(of_one.size(), 2) << "copies of samples, numbers and results besides";
  EXPECT_EQ(launches(3), of_one) << "whatever the number of layers";
}

/// Counts the operators of a step.
class CountingWatch final : public StepWatch {
 public:
  void begin(const StepPart&) override {}
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    ++calls;
    pass_on(op, keys, stack);
  }
  int64_t calls = 0;  ///< of one thread at a time
};

TEST(CapturedStep, RunsOneByOneWhereItIsWatched) {
  const TemporaryDirectory folder;
  Trainer plain = Trainer::create(tiny_run(folder, kOnGpu));
  Trainer graphs = Trainer::create(tiny_run(folder, std::string(kOnGpu) + kGraphs));
  std::string want = story(plain, 6), got = story(graphs, 6);
  CountingWatch of_plain, of_graphs;
  plain.set_watch(&of_plain);
  graphs.set_watch(&of_graphs);
  want += story(plain, 1);
  got += story(graphs, 1);
  EXPECT_EQ(of_graphs.calls, of_plain.calls);
  plain.set_watch(nullptr);
  graphs.set_watch(nullptr);
  std::vector<int64_t> replayed;
  want += story(plain, 3);
  got += story(graphs, 3, &replayed);
  EXPECT_TRUE(got == want);
  EXPECT_THAT(replayed, ElementsAre(8, 9)) << "the watched step has no vote for the next one";
}

TEST(CapturedStep, OverflowsMoveTheLossScaleAsWithout) {
  const TemporaryDirectory folder;
  const std::string change = small_run("precision: F16_MIXED ");
  const auto run = [&](const std::string& more, std::vector<int64_t>& replayed) {
    Trainer trainer = Trainer::create(layered_run(folder, change + more));
    // Steps are skipped until the scale is low enough; it then grows, and some overflow again.
    trainer.scaler().load_state({.scale = 0x1p24, .growth_interval = 2});
    std::string text = story(trainer, 20, &replayed);
    const GradScalerState scale = trainer.scaler().state();
    EXPECT_LT(trainer.optimizer().steps(), 18);
    EXPECT_GT(trainer.optimizer().steps(), 0);
    return text + fmt::format("{} {}", scale.scale, scale.growth_tracker);
  };
  std::vector<int64_t> replayed, none;
  EXPECT_TRUE(run(kGraphs, replayed) == run("", none));
  EXPECT_EQ(replayed.size(), 16);
}

TEST(CapturedStep, WaitsForTheKernelsOfCompiledBlocks) {
  const TemporaryDirectory folder;
  const std::string change = std::string(kOnGpu) + "model { gpt2 { layers: 1 } } ";
  Trainer graphs =
      Trainer::create(tiny_run(folder, change + "compile { enabled: true cuda_graphs: true }"));
  std::string got;
  int steps = 0;
  for (bool replayed = false; !replayed && steps < 5000; ++steps) {
    const StepResult step = graphs.step();
    replayed = step.replayed;
    got += all_of(step);
  }
  EXPECT_TRUE(graphs.captured_step()->has_update());
  EXPECT_TRUE(graphs.compiled_blocks()->is_settled());
  Trainer plain = Trainer::create(tiny_run(folder, change));
  std::string want;
  for (int i = 0; i < steps; ++i) want += all_of(plain.step());
  EXPECT_TRUE(got + state_on_cpu(graphs) == want + state_on_cpu(plain));
}

TEST(CapturedStep, LeavesUpdatesThatNeedTheHostToIt) {
  const TemporaryDirectory folder;
  const std::string change = std::string(kOnGpu) + "optimizer { muon {} } ";
  Trainer plain = Trainer::create(tiny_run(folder, change));
  Trainer graphs = Trainer::create(tiny_run(folder, change + kGraphs));
  std::vector<int64_t> replayed;
  EXPECT_TRUE(story(graphs, 7, &replayed) == story(plain, 7));
  EXPECT_THAT(replayed, ElementsAre(4, 5, 6));
  EXPECT_THAT(graphs.compile_reasons(), Contains(HasSubstr("no CUDA graph of updates: muon")));
}

TEST(CapturedStep, TellsOfStopsAsOtherStepsDo) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder, std::string(kOnGpu) + kGraphs));
  (void)story(trainer, 6);
  bool stops = true;
  trainer.set_stop_request([&] { return stops; });
  const StepResult stopped = trainer.step();
  EXPECT_TRUE(stopped.replayed && stopped.stop);
  stops = false;
  EXPECT_FALSE(trainer.step().stop);
}

TEST(CapturedStep, IsGivenUpWithoutATrace) {
  const TemporaryDirectory folder;
  const std::string change = kOnGpu + tiny_resnet(folder);
  const auto run = [&](const std::string& more, bool ahead) {
    Trainer trainer = Trainer::create(tiny_run(folder, change + more));
    std::string text;
    for (int i = 0; i < 8; ++i) {
      const StepResult step = trainer.step(ahead);
      trainer.give_up_next();
      text += all_of(step) + state_on_cpu(trainer);
    }
    return text;
  };
  const std::string want = run("", false);
  EXPECT_TRUE(run(kGraphs, false) == want);
  EXPECT_TRUE(run(kGraphs, true) == want);
}

TEST(CapturedStep, IsCapturedAgainWhereCastsOfWeightsMoved) {
  const TemporaryDirectory folder;
  const std::string change =
      std::string(kOnGpu) +
      "precision: BF16_MIXED train { weight_average { decay: 0.9 evaluate: true } }";
  const auto run = [&](const std::string& more, std::vector<int64_t>& replayed) {
    Trainer trainer = Trainer::create(tiny_run(folder, change + more));
    std::string text;
    for (int i = 0; i < 3; ++i) {
      text += story(trainer, 6, &replayed);
      text += fmt::format("held out {}\n", trainer.evaluate(1)->loss);
    }
    return text;
  };
  std::vector<int64_t> replayed, none;
  EXPECT_TRUE(run(kGraphs, replayed) == run("", none));
  EXPECT_THAT(replayed, ElementsAre(4, 5, 10, 11, 16, 17));
}

TEST(CapturedStep, IsFoundNotFiniteAsWithout) {
  const TemporaryDirectory folder;
  const auto run = [&](const std::string& more) {
    Trainer trainer = Trainer::create(tiny_run(folder, kOnGpu + more));
    std::string text = story(trainer, 6);
    const Tensor weight = trainer.task().model().named_parameters()[3].tensor;
    const Tensor before = weight.detach().clone();
    {
      const NoGradGuard no_grad;
      weight.fill_(std::numeric_limits<double>::infinity());
    }
    const StepResult infinite = trainer.step();
    EXPECT_FALSE(infinite.outcome.finite);
    text += all_of(infinite);
    {
      const NoGradGuard no_grad;
      weight.copy_(before);
    }
    return text + story(trainer, 2);
  };
  EXPECT_TRUE(run(kGraphs) == run(""));
}

TEST(CapturedStep, HoldsTheSumsOfBuckets) {
  const TemporaryDirectory folder;
  const std::string buckets = "parallel { bucket_mib: 0.01 first_bucket_mib: 0.01 } ";
  MirroredGroup plain_group, group;
  Trainer plain = trainer_of_two(folder, buckets, plain_group);
  Trainer graphs = trainer_of_two(folder, buckets + kGraphs, group);
  std::vector<int64_t> replayed;
  EXPECT_TRUE(story(graphs, 8, &replayed) == story(plain, 8));
  EXPECT_THAT(replayed, ElementsAre(4, 5, 6, 7));
  EXPECT_GT(graphs.reducer()->plan().buckets.size(), 3);
  // Eager steps, and once the capture; then the losses alone.
  EXPECT_LT(group.sums_on_gpu, plain_group.sums_on_gpu);
}

TEST(CapturedStep, RunsOneByOneUntilAllRanksAgree) {
  const TemporaryDirectory folder;
  MirroredGroup group;
  Trainer trainer = trainer_of_two(folder, kGraphs, group);
  // The other rank is not ready, as if a kernel of its own were still being made.
  bool other_is_ready = false;
  group.on_cpu = [&](const Tensor& sum) {
    if (sum.numel() == 2 && !other_is_ready) sum.data<double>()[1] -= 1;
  };
  std::vector<int64_t> replayed;
  (void)story(trainer, 6, &replayed, /*ahead=*/false);
  EXPECT_THAT(replayed, IsEmpty());
  other_is_ready = true;
  (void)story(trainer, 3, &replayed, /*ahead=*/false);
  EXPECT_THAT(replayed, ElementsAre(7, 8));
}

TEST(CapturedStep, EndsForAllRanksWhereOneCannotCapture) {
  const TemporaryDirectory folder;
  MirroredGroup plain_group, group;
  Trainer plain = trainer_of_two(folder, "", plain_group);
  Trainer trainer = trainer_of_two(folder, kGraphs, group);
  int exchanges = 0;
  group.on_cpu = [&](const Tensor& sum) {
    if (sum.numel() == 2 && ++exchanges == 5) sum.data<double>()[1] -= 1;  // in the capture's step
  };
  std::vector<int64_t> replayed;
  EXPECT_TRUE(story(trainer, 8, &replayed) == story(plain, 8));
  EXPECT_THAT(replayed, IsEmpty());
  EXPECT_THAT(trainer.compile_reasons(), Contains(HasSubstr("another rank could not")));
}

TEST(CapturedStep, IsNotCapturedWhereTheGroupCannotBe) {
  const TemporaryDirectory folder;
  const std::string buckets = "parallel { bucket_mib: 0.01 first_bucket_mib: 0.01 } ";
  MirroredGroup plain_group, group;
  group.goes_through_the_cpu = true;
  Trainer plain = trainer_of_two(folder, buckets, plain_group);
  Trainer trainer = trainer_of_two(folder, buckets + kGraphs, group);
  std::vector<int64_t> replayed;
  EXPECT_TRUE(story(trainer, 8, &replayed) == story(plain, 8));
  EXPECT_THAT(replayed, IsEmpty());
  EXPECT_THAT(trainer.compile_reasons(), Contains(HasSubstr("the sum is made on the cpu")));
}

TEST(CapturedStep, SaysWhyThereIsNone) {
  const TemporaryDirectory folder;
  const auto reason = [&](const std::string& more) {
    Trainer trainer = Trainer::create(layered_run(folder, std::string(kGraphs) + more));
    for (int i = 0; i < 6; ++i) EXPECT_FALSE(trainer.step().replayed) << more;
    std::string text;
    for (const std::string& each : trainer.compile_reasons()) text += each + "\n";
    return text;
  };
  EXPECT_THAT(reason("device: \"cpu\""), HasSubstr("passes: the device is cpu, not a GPU"));
  EXPECT_THAT(
      reason(std::string(kOnGpu) + "optimizer { optimizer_in_backward: true clip_grad_norm: 0 }"),
      HasSubstr("optimizer_in_backward"));
  EXPECT_THAT(reason(std::string(kOnGpu) + "train { offload_activations: true }"),
              HasSubstr("offload_activations"));
}

}  // namespace
}  // namespace lockstep::train
