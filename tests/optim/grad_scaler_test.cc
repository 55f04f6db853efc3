#include "optim/grad_scaler.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "optim/adam.h"
#include "optim/clip_grad.h"
#include "optim/sgd.h"
#include "tests/core/expect_error.h"

namespace lockstep::optim {
namespace {

constexpr float kOverflow = std::numeric_limits<float>::infinity();

/// Two parameters, each with an optimizer of its own, whose gradients are given.
class GradScalerTest : public testing::Test {
 protected:
  static Tensor parameter() { return ones({2}).set_requires_grad(); }

  /// Runs backward of the scaled sum of first * slope and second * slope.
  void backward(const GradScaler& scaler, float first, float second) {
    sgd_.zero_grad();
    adam_.zero_grad();
    scaler.scale(sum(mul(first_, first)) + sum(mul(second_, second))).backward();
  }

  Tensor first_ = parameter();
  Tensor second_ = parameter();
  SGD sgd_{{first_}, {.learning_rate = 0.1, .momentum = 0.9}};
  Adam adam_{{second_}, {.learning_rate = 0.1}};
};

TEST_F(GradScalerTest, TwoOptimizersGoAsInPytorch) {
  // What torch.amp.GradScaler("cpu", init_scale=8, growth_interval=2) gives with the same two
  // optimizers: scale and first elements after each step.
  GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  const float slopes[][2] = {{1, 2}, {0.5, kOverflow}, {1, 1}, {-1, 3}, {kOverflow, 1}, {1, 1}};
  const double scales[] = {8, 4, 4, 8, 4, 4};
  const float firsts[] = {0.9f, 0.76f, 0.534f, 0.4306f, 0.4306f, 0.23754f};
  const float seconds[] = {0.9f, 0.9f, 0.806782f, 0.712509f, 0.622892f, 0.535903f};
  for (size_t i = 0; i < 6; ++i) {
    backward(scaler, slopes[i][0], slopes[i][1]);
    EXPECT_EQ(scaler.step(sgd_), slopes[i][0] != kOverflow) << i;
    EXPECT_EQ(scaler.step(adam_), slopes[i][1] != kOverflow) << i;
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), scales[i]) << i;
    EXPECT_NEAR(first_.select(0, 0).item<float>(), firsts[i], 2e-5f) << i;
    EXPECT_NEAR(second_.select(0, 0).item<float>(), seconds[i], 2e-5f) << i;
  }
}

TEST_F(GradScalerTest, UnscaledGradientsCanBeClippedBeforeTheStep) {
  GradScaler scaler;
  backward(scaler, 3, 4);
  scaler.unscale_(sgd_);
  EXPECT_EQ(first_.grad().select(0, 0).item<float>(), 3);
  clip_grad_value_({first_}, 1);
  EXPECT_TRUE(scaler.step(sgd_));
  EXPECT_FLOAT_EQ(first_.select(0, 0).item<float>(), 0.9f);
}

TEST_F(GradScalerTest, ADisabledScalerLeavesLossAndGradientsAlone) {
  GradScaler scaler({.enabled = false});
  EXPECT_EQ(scaler.get_scale(), 1);
  backward(scaler, 3, 4);
  EXPECT_EQ(first_.grad().select(0, 0).item<float>(), 3);
  EXPECT_TRUE(scaler.step(sgd_));
  scaler.update();
  EXPECT_TRUE(scaler.state_dict().numbers.empty());
}

TEST_F(GradScalerTest, ALoadedScalerGoesOnWhereTheSavedOneWas) {
  GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  backward(scaler, 1, 1);
  scaler.step(sgd_);
  scaler.update();
  GradScaler loaded;
  loaded.load_state_dict(scaler.state_dict());
  backward(loaded, 1, 1);
  loaded.step(sgd_);
  loaded.update();
  EXPECT_EQ(loaded.get_scale(), 16);
  StateDict state = loaded.state_dict();
  state.numbers["scale"] = 0;
  expect_error<CheckpointError>([&] { loaded.load_state_dict(state); }, "scale is 0");
  state.numbers.erase("scale");
  expect_error<CheckpointError>([&] { loaded.load_state_dict(state); }, "scale");
  EXPECT_EQ(loaded.get_scale(), 16);
}

TEST_F(GradScalerTest, TheScaleGrowsNoFurtherThanF32Goes) {
  GradScaler scaler({.init_scale = 0x1p126, .growth_interval = 1});
  for (const double scale : {0x1p127, 0x1p127, 0x1p127}) {
    backward(scaler, 0x1p-10f, 0x1p-10f);
    EXPECT_TRUE(scaler.step(sgd_));
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), scale);
  }
}

TEST_F(GradScalerTest, AGivenScaleBeginsTheNextStep) {
  GradScaler scaler;
  backward(scaler, 1, 1);
  scaler.step(sgd_);
  scaler.update(4);
  backward(scaler, 1, 1);
  scaler.unscale_(sgd_);
  EXPECT_EQ(first_.grad().select(0, 0).item<float>(), 1);
  EXPECT_TRUE(scaler.step(sgd_));
}

TEST_F(GradScalerTest, AnOverflowOfAnyGradientOfAnOptimizerSkipsItsStep) {
  for (const bool is_first : {true, false}) {
    SGD both({first_, second_}, {.learning_rate = 0.1});
    const float before = first_.select(0, 0).item<float>();
    GradScaler scaler;
    backward(scaler, is_first ? kOverflow : 1, is_first ? 1 : kOverflow);
    EXPECT_FALSE(scaler.step(both));
    EXPECT_EQ(first_.select(0, 0).item<float>(), before);
  }
}

TEST_F(GradScalerTest, MisuseIsRefused) {
  GradScaler scaler;
  expect_error<AutogradError>([&] { scaler.update(); }, "without gradients");
  expect_error<AutogradError>([&] { scaler.step(sgd_); }, "has a gradient");
  backward(scaler, 1, 1);
  scaler.unscale_(sgd_);
  expect_error<AutogradError>([&] { scaler.unscale_(sgd_); }, "after unscale_");
  scaler.step(sgd_);
  expect_error<AutogradError>([&] { scaler.unscale_(sgd_); }, "after step");
  expect_error<AutogradError>([&] { scaler.step(sgd_); }, "already");
  scaler.update(4);
  EXPECT_EQ(scaler.get_scale(), 4);
  expect_error<ConfigError>([&] { scaler.update(-1); }, "-1");
  expect_error<ConfigError>([] { GradScaler({.growth_factor = 1}); }, "growth_factor");
  expect_error<ConfigError>([] { GradScaler({.backoff_factor = 1}); }, "backoff_factor");
  expect_error<ConfigError>([] { GradScaler({.growth_interval = 0}); }, "growth_interval");
}

}  // namespace
}  // namespace lockstep::optim
