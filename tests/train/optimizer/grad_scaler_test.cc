#include "train/optimizer/grad_scaler.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "tests/conformance/elements.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/non_finite.h"
#include "train/optimizer/grad_norm.h"

namespace lockstep::train {
namespace {

/// One parameter trained by plain SGD.
class GradScalerTest : public testing::Test {
 protected:
  GradScalerTest() { parameter_.set_requires_grad(); }

  /// Runs a training step in which the gradient of each element is `slope`. Returns whether the
  /// optimizer made an update.
  bool step(GradScaler& scaler, double slope) {
    parameter_.set_grad({});
    scaler.scale(sum(mul(parameter_, slope))).backward();
    const int64_t before = optimizer_.steps();
    scaler.step(optimizer_, {parameter_.grad()}, 0.1);
    scaler.update();
    return optimizer_.steps() > before;
  }
  std::vector<double> values() const { return elements_as<double>(parameter_.detach()); }

  Tensor parameter_ = ones({3});
  Sgd optimizer_{{{"p", parameter_}}, {.momentum = 0, .weight_decay = 0}};
};

TEST_F(GradScalerTest, DefaultsArePyTorchs) {
  const GradScaler scaler;
  EXPECT_TRUE(scaler.is_enabled());
  EXPECT_EQ(scaler.get_scale(), 65536);
  EXPECT_EQ(scaler.state(), (GradScalerState{65536, 2, 0.5, 2000, 0}));
}

TEST_F(GradScalerTest, ScalingChangesNoBitOfAnUpdate) {
  GradScaler scaler;
  EXPECT_TRUE(step(scaler, 0.3));
  const std::vector<double> scaled = values();
  parameter_.detach().fill_(1);
  GradScaler none({.enabled = false});
  EXPECT_TRUE(step(none, 0.3));
  EXPECT_EQ(values(), scaled);
}

TEST_F(GradScalerTest, TheScaleGrowsAfterTheIntervalAndBacksOffAfterAnOverflow) {
  // Expected values are those of torch.amp.GradScaler for the same sequence.
  GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  const double slopes[] = {1, 1, kInfinity, 1, 1};
  const double scales[] = {8, 16, 8, 8, 16};
  const int64_t tracked[] = {1, 0, 0, 1, 0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(step(scaler, slopes[i]), slopes[i] == 1);
    EXPECT_EQ(scaler.get_scale(), scales[i]) << i;
    EXPECT_EQ(scaler.state().growth_tracker, tracked[i]) << i;
  }
  EXPECT_EQ(optimizer_.steps(), 4);
}

TEST_F(GradScalerTest, ASkippedStepChangesNothing) {
  GradScaler scaler;
  for (const double bad : {kInfinity, -kInfinity, kNaN}) {
    EXPECT_FALSE(step(scaler, bad));
  }
  EXPECT_EQ(values(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(optimizer_.steps(), 0);
  EXPECT_EQ(scaler.get_scale(), 65536 / 8);
}

TEST_F(GradScalerTest, OneBadElementOfOneGradientIsFound) {
  GradScaler scaler;
  const Tensor good = ones({5000});
  const Tensor bad = ones({5000});
  bad.select(0, 4999).fill_(kInfinity);
  const std::vector<Tensor> gradients = {good, bad};
  scaler.unscale_(gradients);
  EXPECT_TRUE(scaler.found_inf());
  scaler.update();
  EXPECT_FALSE(scaler.found_inf());
}

TEST_F(GradScalerTest, UnscaledGradientsAreSteppedAsTheyAre) {
  GradScaler scaler({.init_scale = 4});
  const std::vector<Tensor> gradients = {full({3}, 4.0)};
  scaler.unscale_(gradients);
  EXPECT_EQ(elements_as<double>(gradients[0]), (std::vector<double>{1, 1, 1}));
  scaler.step(optimizer_, gradients, 0.5);
  EXPECT_EQ(values(), (std::vector<double>{0.5, 0.5, 0.5}));
}

TEST_F(GradScalerTest, TheNormIsThatOfUnscaledGradients) {
  Generator generator(4);
  const std::vector<Tensor> gradients = {randn({9000}, DType::kF32, &generator),
                                         randn({7}, DType::kF32, &generator)};
  GradScaler scaler;
  const Tensor norm = scaler.unscale_(gradients);
  EXPECT_TRUE(equal(norm, grad_norm(gradients)));
  scaler.update();
  gradients[1].fill_(kInfinity);
  EXPECT_EQ(elements_as<double>(scaler.unscale_(gradients))[0], kInfinity);
  scaler.update();
  EXPECT_EQ(elements_as<double>(scaler.unscale_({}))[0], 0);
  EXPECT_FALSE(scaler.found_inf());
  EXPECT_FALSE(GradScaler({.enabled = false}).unscale_(gradients).defined());
}

TEST_F(GradScalerTest, MisuseIsRefused) {
  GradScaler scaler;
  EXPECT_TRUE(says(message_of<AutogradError>([&] { scaler.update(); }),
                   "update() without gradients: expected unscale_ or step before it."));
  const std::vector<Tensor> gradients = {ones({3})};
  scaler.unscale_(gradients);
  EXPECT_TRUE(says(message_of<AutogradError>([&] { scaler.unscale_(gradients); }),
                   "unscale_ was called already: expected once before update()."));
  scaler.update();
  scaler.unscale_(gradients);
}

TEST_F(GradScalerTest, ANumberOutOfItsRangeIsNamed) {
  const std::string scale = ": expected a finite number above 0.";
  const std::string growth = ": expected a finite number above 1.";
  const std::string backoff = ": expected a number between 0 and 1.";
  const struct {
    GradScalerOptions options;
    std::string says;
  } cases[] = {
      {{.init_scale = 0}, "scale is 0" + scale},
      {{.init_scale = kInfinity}, "scale is inf" + scale},
      {{.growth_factor = 1}, "growth_factor is 1" + growth},
      {{.growth_factor = kInfinity}, "growth_factor is inf" + growth},
      {{.backoff_factor = 0}, "backoff_factor is 0" + backoff},
      {{.backoff_factor = 1}, "backoff_factor is 1" + backoff},
      {{.growth_interval = 0}, "growth_interval is 0: expected at least 1 step."},
  };
  for (const auto& [options, says] : cases) {
    const std::string message = "[grad_scaler] " + says;
    EXPECT_EQ(message_of<ConfigError>([&] { (void)GradScaler(options); }), message);
    GradScaler scaler({.init_scale = 8});
    const GradScalerState state{options.init_scale, options.growth_factor, options.backoff_factor,
                                options.growth_interval};
    EXPECT_EQ(message_of<CheckpointError>([&] { scaler.load_state(state); }), message);
    EXPECT_EQ(scaler.get_scale(), 8) << "a state that is refused changes nothing";
  }
  GradScaler scaler({.init_scale = 8});
  EXPECT_EQ(message_of<ConfigError>([&] { scaler.update(-1.5); }),
            "[grad_scaler] scale is -1.5" + scale);
  EXPECT_EQ(message_of<CheckpointError>([&] { scaler.load_state({.growth_tracker = -1}); }),
            "[grad_scaler] growth_tracker is -1: expected a number of steps.");
  EXPECT_EQ(scaler.get_scale(), 8);
}

TEST_F(GradScalerTest, TheScaleStaysInTheRangeOfF32) {
  GradScaler scaler({.init_scale = 0x1p127, .growth_interval = 1});
  const std::vector<Tensor> good = {ones({3})};
  scaler.unscale_(good);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 0x1p127);
  scaler.update(0x1p-126);
  const std::vector<Tensor> bad = {full({3}, kInfinity)};
  scaler.unscale_(bad);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 0x1p-126);
}

TEST_F(GradScalerTest, AStateThatIsLoadedGoesOn) {
  GradScaler whole({.init_scale = 8, .growth_interval = 3});
  step(whole, 1);
  step(whole, 1);
  GradScaler resumed;
  resumed.load_state(whole.state());
  step(whole, 1);
  step(resumed, 1);
  EXPECT_EQ(resumed.state(), whole.state());
  EXPECT_EQ(resumed.get_scale(), 16);
}

TEST_F(GradScalerTest, ADisabledOneDoesNothing) {
  GradScaler scaler({.enabled = false});
  EXPECT_EQ(scaler.get_scale(), 1);
  const Tensor loss = sum(parameter_);
  EXPECT_TRUE(scaler.scale(loss).is_same(loss));
  EXPECT_TRUE(step(scaler, kInfinity));  // a disabled scaler does not check
  EXPECT_EQ(optimizer_.steps(), 1);
}

}  // namespace
}  // namespace lockstep::train
