// Optimizers in training loops, as a user writes them.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/device/waits.h"
#include "core/ops/factory/copy.h"
#include "core/ops/loss/loss.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "dist/ddp/ddp.h"
#include "dist/group/thread_group.h"
#include "nn/models/mlp.h"
#include "optim/clip_grad.h"
#include "optim/cosine_schedules.h"
#include "tests/optim/every_optimizer.h"
#include "tests/optim/reference.h"

namespace lockstep::optim {
namespace {

/// Samples whose label is the largest of their first four numbers.
struct Batch {
  Tensor samples;
  Tensor labels;

  explicit Batch(uint64_t seed, int64_t count = 64) {
    Generator generator(seed);
    samples = randn({count, 8}, DType::kF32, &generator);
    labels = samples.slice(1, 0, 4).argmax(1);
  }
};

nn::MlpOptions small() { return {.inputs = 8, .hidden_widths = {16}, .classes = 4}; }

TEST(Training, EveryOptimizerLowersTheLossOfAModel) {
  const Batch batch(3);
  for (const MakeOptimizer& make : every_optimizer()) {
    manual_seed(1);
    nn::Mlp model(small());
    const std::unique_ptr<Optimizer> optimizer = make(model.named_parameters());
    double first = 0;
    double last = 0;
    for (int step = 0; step < 60; ++step) {
      optimizer->zero_grad();
      const Tensor loss = cross_entropy_loss(model.forward(batch.samples), batch.labels);
      loss.backward();
      clip_grad_norm_(model.named_parameters(), 1);
      optimizer->step();
      last = loss.item<double>();
      if (step == 0) first = last;
    }
    EXPECT_LT(last, 0.8 * first) << optimizer->kind();
  }
}

/// Trains on `ranks` ranks, which share each batch; returns rank 0's parameters.
std::vector<double> trained_on(int ranks) {
  std::vector<double> result;
  const auto train = [&](dist::ProcessGroup& group) {
    manual_seed(7);
    nn::Mlp model(small());
    dist::Ddp ddp(model, group);
    AdamW optimizer(model.named_parameters(), {.learning_rate = 0.05});
    CosineAnnealingLR schedule(optimizer, {.t_max = 20});
    for (uint64_t step = 0; step < 20; ++step) {
      const Batch batch(step);
      const int64_t share = 64 / group.size();
      const int64_t begin = group.rank() * share;
      optimizer.zero_grad();
      cross_entropy_loss(model.forward(batch.samples.slice(0, begin, begin + share)),
                         batch.labels.slice(0, begin, begin + share))
          .backward();
      optimizer.step();
      schedule.step();
    }
    if (group.rank() == 0) result = elements(model.parameters());
  };
  for (const std::exception_ptr& error : dist::run_thread_ranks(ranks, train)) {
    if (error) std::rethrow_exception(error);
  }
  return result;
}

TEST(Training, AnAsynchronousDeviceIsNeverWaitedFor) {
  constexpr Device kHost{DeviceType::kHost, 0};
  for (const MakeOptimizer& make : every_optimizer()) {
    const std::vector<Tensor> want = start(DType::kF32);
    std::vector<Tensor> got = start(DType::kF32);
    for (Tensor& each : got) each = each.detach().to(kHost).set_requires_grad();
    const std::unique_ptr<Optimizer> there = make(got);
    const std::unique_ptr<Optimizer> here = make(want);
    for (int step = 1; step <= 5; ++step) {
      set_gradients(want, step);
      for (size_t i = 0; i < want.size(); ++i) {
        const Tensor& grad = want[i].grad();
        got[i].set_grad(grad.defined() ? grad.to(kHost) : Tensor());
      }
      const int64_t waits = hidden_waits();
      clip_grad_norm_(got, 0.5);
      clip_grad_value_(got, 0.4);
      there->step();
      EXPECT_EQ(hidden_waits(), waits) << there->kind();
      clip_grad_norm_(want, 0.5);
      clip_grad_value_(want, 0.4);
      here->step();
    }
    for (Tensor& each : got) each = each.detach().to(kCPU);
    EXPECT_EQ(elements(got), elements(want)) << here->kind();
  }
}

TEST(Training, TwoRanksTakeTheStepsOfOne) {
  const std::vector<double> alone = trained_on(1);
  ASSERT_FALSE(alone.empty());
  expect_near(trained_on(2), alone, 2e-4, "parameters");
}

}  // namespace
}  // namespace lockstep::optim
