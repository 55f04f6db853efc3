#include "train/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/base/parallel.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/op_counter.h"
#include "core/tensor/allocator.h"
#include "tests/train/tiny_run.h"
#include "train/language_task.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

constexpr const char* kPlain = "model { gpt2 { dropout: 0 } } ";
constexpr const char* kLlama =
    "model { llama { context_length: 16 layers: 2 heads: 4 kv_heads: 2 width: 16 } } ";
constexpr const char* kResnet =
    "model { resnet { channels: 1 height: 8 width: 8 classes: 10 base_width: 8 blocks: [1, 1] } } "
    "data { random {} } ";
constexpr const char* kMlp =
    "model { mlp { inputs: 64 classes: 10 hidden_widths: [32] } } data { random {} } ";

std::string with(const std::string& precision) { return "precision: " + precision + " "; }

std::vector<double> losses(const config::RunConfig& config, int steps) {
  Trainer trainer = Trainer::create(config);
  std::vector<double> losses;
  while (std::ssize(losses) < steps) losses.push_back(trainer.step().loss);
  return losses;
}

double mean_of_last(const std::vector<double>& losses, int count) {
  return std::accumulate(losses.end() - count, losses.end(), 0.0) / count;
}

TEST(Precision, NamesTheRegionThatItAsksFor) {
  const TemporaryDirectory folder;
  EXPECT_EQ(precision_of(tiny_run(folder)), Precision::kF32);
  EXPECT_EQ(precision_of(tiny_run(folder, with("BF16_MIXED"))), Precision::kBF16Mixed);
  EXPECT_EQ(precision_of(tiny_run(folder, with("F16_MIXED"))), Precision::kF16Mixed);
  {
    const AutocastGuard region = autocast_region(Precision::kF16Mixed, DeviceType::kCPU);
    EXPECT_TRUE(is_autocast_enabled(DeviceType::kCPU));
    EXPECT_EQ(autocast_dtype(DeviceType::kCPU), DType::kF16);
    const AutocastGuard plain = autocast_region(Precision::kF32, DeviceType::kCPU);
    EXPECT_FALSE(is_autocast_enabled(DeviceType::kCPU));
  }
}

TEST(Precision, MixedRunsReachTheLossOfF32) {
  const TemporaryDirectory folder;
  const std::string more = std::string(kPlain) + "train { steps: 80 } ";
  const double f32 = mean_of_last(losses(tiny_run(folder, more), 80), 10);
  for (const char* precision : {"BF16_MIXED", "F16_MIXED"}) {
    const double mixed = mean_of_last(losses(tiny_run(folder, more + with(precision)), 80), 10);
    EXPECT_NEAR(mixed, f32, 0.01 * f32) << precision;
  }
}

TEST(Precision, EveryModelTrainsInIt) {
  const TemporaryDirectory folder;
  for (const char* model : {"", kLlama, kResnet, kMlp}) {
    const double f32 = losses(tiny_run(folder, model), 1)[0];
    for (const char* precision : {"BF16_MIXED", "F16_MIXED"}) {
      const auto mixed = losses(tiny_run(folder, model + with(precision)), 3);
      EXPECT_NEAR(mixed[0], f32, 0.01 * f32) << model << precision;
      EXPECT_NE(mixed[0], f32) << model << precision;
      EXPECT_TRUE(std::isfinite(mixed[2])) << model << precision;
    }
  }
}

/// Counts the floating tensors [rows, classes] that operators return, or change, by dtype.
struct Logits : DispatchMode {
  Dims sizes;
  int f32 = 0;
  int halves = 0;

  explicit Logits(const Dims& of) : sizes(of) {}
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    pass_on(op, keys, stack);
    for (const Value& result : stack.results()) {
      if (!result.is_tensor()) continue;
      const Tensor& tensor = result.tensor();
      if (tensor.numel() != sizes[0] * sizes[1] || tensor.size(-1) != sizes[1]) continue;
      f32 += tensor.dtype() == DType::kF32 ? 1 : 0;
      halves += tensor.dtype() == DType::kBF16 ? 1 : 0;
    }
  }
};

TEST(Precision, LogitsAndTheirGradientAreNeverWidened) {
  const TemporaryDirectory folder;
  for (const char* model : {kPlain, kLlama}) {
    SCOPED_TRACE(model);
    Trainer trainer = Trainer::create(tiny_run(folder, model + with("BF16_MIXED")));
    const int64_t rows = trainer.samples_per_batch() * trainer.task().tokens_per_sample();
    Logits logits({rows, dynamic_cast<LanguageTask&>(trainer.task()).model().vocabulary()});
    const ModeGuard on(logits);
    trainer.step();
    trainer.evaluate(1);
    EXPECT_EQ(logits.f32, 0);
    EXPECT_GT(logits.halves, 0);
  }
}

TEST(Precision, TwoRunsGiveTheSameBitsOnAnyNumberOfThreads) {
  const TemporaryDirectory folder;
  for (const char* precision : {"BF16_MIXED", "F16_MIXED"}) {
    std::string first;
    for (const char* threads : {"threads: 1", "threads: 1", "threads: 2", "threads: 3"}) {
      Trainer trainer = Trainer::create(tiny_run(folder, with(precision) + threads));
      for (int i = 0; i < 8; ++i) trainer.step();
      if (first.empty()) first = state_bytes(trainer);
      EXPECT_EQ(state_bytes(trainer), first) << precision << " " << threads;
    }
  }
}

TEST(Precision, WeightsAndOptimizerStateAreF32) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder, with("BF16_MIXED")));
  trainer.step();
  for (const Tensor& parameter : trainer.task().model().parameters()) {
    EXPECT_EQ(parameter.dtype(), DType::kF32);
    EXPECT_EQ(parameter.grad().dtype(), DType::kF32);
  }
  for (const nn::StoredParameter& state : trainer.optimizer().state()) {
    EXPECT_EQ(state.tensor.dtype(), DType::kF32);
  }
}

TEST(Precision, SteadyStepsKeepNoCasts) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder, with("BF16_MIXED")));
  for (int i = 0; i < 3; ++i) trainer.step();
  const MemoryStats before = allocator(kCPU).stats();
  for (int i = 0; i < 5; ++i) trainer.step();
  const MemoryStats after = allocator(kCPU).stats();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(after.system_calls, before.system_calls);
}

/// Counts the casts of a model's parameters.
struct WeightCasts : DispatchMode {
  std::vector<Tensor> weights;
  int count = 0;

  explicit WeightCasts(Trainer& trainer) : weights(trainer.task().model().parameters()) {}
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    if (op.name() == "_to_copy") {
      const Tensor& from = stack.arguments()[0].tensor();
      for (const Tensor& weight : weights) count += from.storage() == weight.storage() ? 1 : 0;
    }
    pass_on(op, keys, stack);
  }
};

constexpr const char* kOptimizers[] = {
    "optimizer { adamw {} } ", "optimizer { sgd { momentum: 0.9 } } ", "optimizer { muon {} } ",
    "optimizer { optimizer_in_backward: true clip_grad_norm: 0 } "};

TEST(Precision, TheOptimizerWritesTheCastsOfWeights) {
  const TemporaryDirectory folder;
  for (const char* model : {"", kLlama}) {
    for (const char* optimizer : kOptimizers) {
      SCOPED_TRACE(testing::Message() << model << optimizer);
      Trainer trainer = Trainer::create(tiny_run(
          folder, model + with("BF16_MIXED") + optimizer + "train { micro_batch_size: 2 } "));
      WeightCasts casts(trainer);
      const ModeGuard on(casts);
      trainer.step();
      EXPECT_GT(casts.count, 0);
      casts.count = 0;
      for (int i = 0; i < 2; ++i) trainer.step();
      trainer.evaluate(1);
      EXPECT_EQ(casts.count, 0);
    }
  }
}

TEST(Precision, KeptCastsChangeNoBit) {
  const TemporaryDirectory folder;
  for (const std::string precision : {"BF16_MIXED", "F16_MIXED"}) {
    for (const std::string optimizer : kOptimizers) {
      if (precision == "F16_MIXED" && optimizer.find("in_backward") != optimizer.npos) continue;
      SCOPED_TRACE(precision + " " + optimizer);
      const config::RunConfig config =
          tiny_run(folder, with(precision) + optimizer + "train { micro_batch_size: 2 } ");
      Trainer keeping = Trainer::create(config), casting = Trainer::create(config);
      for (const Tensor& each : casting.task().model().parameters()) keep_cast(each, false);
      // Weights that the program changes are cast again.
      for (int i = 0; i < 3; ++i) {
        for (Trainer* trainer : {&keeping, &casting}) {
          trainer->task().model().parameters()[0].detach().fill_(0.01 * i);
        }
        EXPECT_EQ(trace(keeping, 2), trace(casting, 2));
      }
    }
  }
}

TEST(Precision, EvaluationIsInTheRunsPrecision) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder, with("BF16_MIXED")));
  const double mixed = trainer.evaluate(0)->loss;
  const double f32 = trainer.task().evaluate({})->loss;
  EXPECT_NE(mixed, f32);
  EXPECT_NEAR(mixed, f32, 0.01 * f32);
}

TEST(Precision, AnOverflowBacksOffAndTrainingGoesOn) {
  const TemporaryDirectory folder;
  Trainer trainer =
      Trainer::create(tiny_run(folder, with("F16_MIXED") + "schedule { warmup_steps: 10 }"));
  trainer.scaler().load_state({.scale = 0x1p28});
  const std::string before = state_bytes(trainer);
  StepResult step = trainer.step();
  const double first_rate = step.learning_rate;
  EXPECT_TRUE(step.outcome.overflowed && step.outcome.finite);
  EXPECT_EQ(step.loss_scale, 0x1p28);
  EXPECT_EQ(trainer.scaler().get_scale(), 0x1p27);
  EXPECT_EQ(state_bytes(trainer), before);
  int skipped = 1;
  while ((step = trainer.step()).outcome.overflowed) ++skipped;
  EXPECT_LT(skipped, 28);
  EXPECT_TRUE(step.outcome.finite);
  EXPECT_EQ(step.learning_rate, first_rate) << "a skipped step moved the schedule";
  EXPECT_EQ(trainer.optimizer().steps(), 1);
  EXPECT_EQ(trainer.position(), (Position{skipped + 1, skipped + 1}));
  EXPECT_EQ(trainer.scaler().get_scale(), std::ldexp(1.0, 28 - skipped));
  EXPECT_NE(state_bytes(trainer), before);
}

TEST(Precision, ALossScaleTakesNoSecondNorm) {
  const TemporaryDirectory folder;
  for (const char* precision : {"BF16_MIXED", "F16_MIXED"}) {
    Trainer trainer = Trainer::create(tiny_run(folder, with(precision)));
    OpCounter counter;
    {
      const ModeGuard on(counter);
      trainer.step();
    }
    EXPECT_THAT(counter.table(), testing::ContainsRegex("_block_square_sums +1 ")) << precision;
  }
}

TEST(Precision, ALossThatIsNotFiniteIsNotTheScalersToForgive) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder, with("F16_MIXED")));
  const GradScalerState scaler = trainer.scaler().state();
  for (const Tensor& parameter : trainer.task().model().parameters()) {
    parameter.detach().fill_(1e4);  // overflows f16 after the first product
  }
  const StepResult step = trainer.step();
  EXPECT_FALSE(step.outcome.finite);
  EXPECT_FALSE(step.outcome.overflowed);
  EXPECT_EQ(trainer.scaler().state(), scaler);
  EXPECT_EQ(trainer.optimizer().steps(), 0);
}

TEST(Precision, ARunThatIsResumedGoesOnWithTheSameBitsAndScale) {
  const TemporaryDirectory folder;
  for (const char* precision : {"BF16_MIXED", "F16_MIXED"}) {
    const config::RunConfig config =
        tiny_run(folder, with(precision) + "train { micro_batch_size: 2 leaves: 2 }");
    const bool scales = precision_of(config) == Precision::kF16Mixed;
    Trainer whole = Trainer::create(config);
    // A scale that moves while a few steps are made.
    if (scales) whole.scaler().load_state({.scale = 32, .growth_interval = 2});
    for (int i = 0; i < 3; ++i) whole.step();
    const auto path = save_checkpoint(folder / precision, whole, config::to_text(config));
    EXPECT_EQ(verify_checkpoint(path).grad_scaler.has_value(), scales);
    Trainer resumed = Trainer::create(config);
    restore(resumed, path, verify_checkpoint(path));
    EXPECT_EQ(resumed.scaler().state(), whole.scaler().state());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(resumed.step().loss, whole.step().loss);
    EXPECT_EQ(state_bytes(resumed), state_bytes(whole));
    EXPECT_EQ(resumed.scaler().state(), whole.scaler().state());
    EXPECT_NE(whole.scaler().state().scale, 32);
  }
}

TEST(Precision, ACheckpointOfF32StartsTheScaleAfresh) {
  const TemporaryDirectory folder;
  const config::RunConfig f32 = tiny_run(folder);
  Trainer trainer = Trainer::create(f32);
  trainer.step();
  const auto path = save_checkpoint(folder / "checkpoints", trainer, config::to_text(f32));
  Trainer mixed = Trainer::create(tiny_run(folder, with("F16_MIXED")));
  restore(mixed, path, verify_checkpoint(path));
  EXPECT_EQ(mixed.scaler().state().scale, 65536.0 / 128) << "that of a sum over 128 targets";
  EXPECT_EQ(state_bytes(mixed), state_bytes(trainer));
}

}  // namespace
}  // namespace lockstep::train
