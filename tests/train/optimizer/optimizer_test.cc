#include "train/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "core/device/device_runtime.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/stream.h"
#include "train/optimizer/grad_scaler.h"

namespace lockstep::train {
namespace {

constexpr Device kHost{DeviceType::kHost, 0};

/// Two parameters on a device, with gradients.
struct Problem {
  std::vector<Tensor> parameters, gradients;
  AdamW optimizer;

  explicit Problem(Device device = kCPU) : Problem(device, drawn(5, device), drawn(6, device)) {}

  void step(const Tensor& found_inf = {}) {
    optimizer.step(gradients, 0.1, 1, {.grad_factor = {}, .found_inf = found_inf});
  }

 private:
  Problem(Device, std::vector<Tensor> values, std::vector<Tensor> slopes)
      : parameters(std::move(values)),
        gradients(std::move(slopes)),
        optimizer({{"a", parameters[0]}, {"b", parameters[1]}}, {}) {}

  static std::vector<Tensor> drawn(uint64_t seed, Device device) {
    Generator generator(seed);
    const Tensor a = randn({3, 5}, DType::kF32, &generator);
    return {a.to(device), randn({7}, DType::kF32, &generator).to(device)};
  }
};

void expect_same_state(const Problem& got, const Problem& want) {
  EXPECT_EQ(got.optimizer.steps(), want.optimizer.steps());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(equal(got.parameters[i].to(kCPU), want.parameters[i].to(kCPU))) << i;
  }
  const auto states = got.optimizer.state(), wanted = want.optimizer.state();
  for (size_t i = 0; i < states.size(); ++i) {
    EXPECT_TRUE(equal(states[i].tensor.to(kCPU), wanted[i].tensor.to(kCPU))) << states[i].name;
  }
}

TEST(Optimizer, AStepThatIsLeftOutDoesNotCount) {
  for (const Device device : {kCPU, kHost}) {
    Problem some(device), want;
    for (const double found : {1, 0, 0, 1, 0}) {
      some.step(full({}, found, {DType::kF32, device}));
      if (found == 0) want.step();
    }
    EXPECT_EQ(some.optimizer.steps(), 3);
    expect_same_state(some, want);
  }
}

TEST(Optimizer, GoesOnFromTheStepsAndStateOfAnother) {
  Problem whole, resumed;
  whole.step();
  whole.step();
  for (size_t i = 0; i < 2; ++i) resumed.parameters[i].copy_(whole.parameters[i]);
  const auto from = whole.optimizer.state(), to = resumed.optimizer.state();
  for (size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  resumed.optimizer.set_steps(whole.optimizer.steps());
  whole.step();
  resumed.step();
  expect_same_state(resumed, whole);
}

TEST(Optimizer, PartsOfAStepAreTheWhole) {
  Problem parts, whole;
  for (int i = 0; i < 3; ++i) {
    whole.step();
    parts.optimizer.begin_parts();
    for (const uint32_t each : {1, 0}) {
      parts.optimizer.step_part(std::span(&each, 1), parts.gradients, 0.1, 1);
    }
  }
  expect_same_state(parts, whole);
}

TEST(Optimizer, StepsAreQueuedBehindOneAnotherWithoutAWait) {
  Problem there(kHost);
  GradScaler scaler;
  scaler.scale_on(kHost);
  std::promise<void> queued;
  auto in_time = std::make_shared<std::promise<bool>>();
  current_stream(kHost).add_callback([all = queued.get_future().share(), in_time] {
    in_time->set_value(all.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  });
  for (int i = 0; i < 4; ++i) {
    scaler.step(there.optimizer, there.gradients, 0.1);
    scaler.update();
  }
  queued.set_value();
  EXPECT_TRUE(in_time->get_future().get()) << "a step waited for the device";
  EXPECT_EQ(there.optimizer.steps(), 4);
}

}  // namespace
}  // namespace lockstep::train
