#include "train/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/allocator.h"
#include "core/error.h"
#include "core/parallel.h"
#include "tests/train/temporary_directory.h"

namespace lockstep::train {
namespace {

/// A small GPT-2 on a made-up text, with `more` laid over it.
config::RunConfig small_run(const TemporaryDirectory& folder, const std::string& more = "") {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += fmt::format("{} and {} make {}. ", i % 10, i % 7, i % 10 + i % 7);
  put_file(folder / "text.txt", text);
  const std::string base = fmt::format(
      R"(model {{ gpt2 {{ context_length: 16 layers: 2 heads: 2 width: 16 dropout: 0.1 }} }}
         data {{ text {{ path: "{}" held_out_bytes: 500 }} }}
         optimizer {{ learning_rate: 3e-3 }}
         train {{ steps: 20 batch_size: 8 }})",
      (folder / "text.txt").string());
  config::RunConfig config;
  config::Origins origins;
  config::merge_text(config, origins, base, "base.txtpb");
  if (!more.empty()) config::merge_text(config, origins, more, "more.txtpb");
  config::resolve(config, origins);
  return config;
}

/// Everything that must be equal in two equal runs: losses, norms, the bytes of the weights.
struct Trace {
  std::vector<double> losses;
  std::vector<double> norms;
  std::string weights;
  friend bool operator==(const Trace&, const Trace&) = default;
};

Trace trace(const config::RunConfig& config, int steps) {
  Trainer trainer(config);
  Trace result;
  for (int i = 0; i < steps; ++i) {
    const StepResult step = trainer.step();
    result.losses.push_back(step.loss);
    result.norms.push_back(step.grad_norm);
  }
  for (const Tensor& parameter : trainer.model().parameters()) {
    result.weights.append(static_cast<const char*>(parameter.data()), parameter.nbytes());
  }
  return result;
}

TEST(Trainer, TwoRunsOfOneConfigGiveTheSameBits) {
  const TemporaryDirectory folder;
  const config::RunConfig config = small_run(folder);
  EXPECT_EQ(trace(config, 5), trace(config, 5));
}

TEST(Trainer, AnotherSeedGivesOtherLosses) {
  const TemporaryDirectory folder;
  EXPECT_NE(trace(small_run(folder), 2).losses, trace(small_run(folder, "seed: 1"), 2).losses);
}

TEST(Trainer, KernelThreadsDoNotChangeBits) {
  const TemporaryDirectory folder;
  const Trace one = trace(small_run(folder, "threads: 1"), 4);
  EXPECT_EQ(one, trace(small_run(folder, "threads: 2"), 4));
  EXPECT_EQ(one, trace(small_run(folder, "threads: 4"), 4));
}

TEST(Trainer, TheLossFalls) {
  const TemporaryDirectory folder;
  const Trace run = trace(small_run(folder, "train { steps: 100 }"), 100);
  EXPECT_LT(run.losses.back(), 0.6 * run.losses.front());
}

TEST(Trainer, MicroBatchesChangeRoundingOnly) {
  const TemporaryDirectory folder;
  const std::string plain = "model { gpt2 { dropout: 0 } }";
  const Trace whole = trace(small_run(folder, plain), 3);
  const Trace cut = trace(small_run(folder, plain + "train { micro_batch_size: 2 }"), 3);
  for (size_t i = 0; i < whole.losses.size(); ++i) {
    EXPECT_NEAR(whole.losses[i], cut.losses[i], 2e-5);
    EXPECT_NEAR(whole.norms[i], cut.norms[i], 1e-3 * whole.norms[i]);
  }
}

TEST(Trainer, LeavesChangeRoundingOnly) {
  const TemporaryDirectory folder;
  const std::string cut = "train { micro_batch_size: 1 leaves: ";
  const Trace one = trace(small_run(folder, cut + "1 }"), 3);
  for (const char* leaves : {"2", "4", "8"}) {
    const Trace many = trace(small_run(folder, cut + leaves + " }"), 3);
    for (size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(one.losses[i], many.losses[i], 2e-5);
    EXPECT_EQ(many, trace(small_run(folder, cut + leaves + " }"), 3));
  }
}

TEST(Trainer, SteadyStepsAskTheSystemForNoMemory) {
  const TemporaryDirectory folder;
  Trainer trainer(small_run(folder));
  for (int i = 0; i < 3; ++i) trainer.step();
  const MemoryStats before = allocator(kCPU).stats();
  for (int i = 0; i < 5; ++i) trainer.step();
  const MemoryStats after = allocator(kCPU).stats();
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.system_calls, before.system_calls);
  EXPECT_EQ(after.allocated, before.allocated);
}

TEST(Trainer, EvaluationSeesEveryHeldOutByteOnce) {
  const TemporaryDirectory folder;
  Trainer trainer(small_run(folder));
  const Evaluation all = trainer.evaluate();
  EXPECT_EQ(all.targets, 500);
  EXPECT_EQ(all.loss, trainer.evaluate().loss);
  EXPECT_NEAR(all.bits_per_byte(), 8, 0.5);  // untrained: about a byte's worth each
}

TEST(Trainer, ARateThatIsFarTooHighEndsWithAnErrorThatNamesTheStep) {
  const TemporaryDirectory folder;
  Trainer trainer(small_run(folder,
                            "optimizer { learning_rate: 1000 clip_grad_norm: 0 "
                            "sgd { } }"));
  const std::string message = message_of<NonFiniteError>([&] {
    for (int i = 0; i < 200; ++i) trainer.step();
  });
  EXPECT_TRUE(says(message, "at step"));
}

TEST(Trainer, LlamaTrainsWithSgd) {
  const TemporaryDirectory folder;
  const std::string llama =
      "model { llama { context_length: 16 layers: 2 heads: 4 kv_heads: 2 width: 16 } }"
      "optimizer { sgd { momentum: 0.9 nesterov: true } learning_rate: 0.05 }";
  const Trace run = trace(small_run(folder, llama), 20);
  EXPECT_LT(run.losses.back(), run.losses.front());
}

}  // namespace
}  // namespace lockstep::train
