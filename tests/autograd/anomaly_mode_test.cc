#include "autograd/anomaly_mode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "core/base/error.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::leaf;

/// Backward computes 0 / 0: the derivative of sqrt divides the gradient 0 by 2 sqrt(0).
Tensor makes_nan(const Tensor& x) { return (x * 0).sqrt() * 0; }

TEST(AnomalyMode, IsOffAtFirstAndGuardsNest) {
  EXPECT_FALSE(is_anomaly_enabled());
  {
    const AnomalyModeGuard on;
    EXPECT_TRUE(is_anomaly_enabled());
    EXPECT_TRUE(is_anomaly_check_nan_enabled());
    {
      const AnomalyModeGuard without_nan(true, false);
      EXPECT_FALSE(is_anomaly_check_nan_enabled());
      const AnomalyModeGuard off(false);
      EXPECT_FALSE(is_anomaly_enabled());
    }
    EXPECT_TRUE(is_anomaly_check_nan_enabled());
    bool elsewhere = true;
    std::thread([&] { elsewhere = is_anomaly_enabled(); }).join();
    EXPECT_FALSE(elsewhere);
  }
  EXPECT_FALSE(is_anomaly_enabled());
}

TEST(AnomalyMode, NamesTheNodeThatMadeTheFirstNaNAndWhereItWasRecorded) {
  const AnomalyModeGuard on;
  const Tensor x = leaf({1});
  EXPECT_THROWS((makes_nan(x) * 2).sum().backward(), AutogradError, "[SqrtBackward0]", "NaN",
                "gradient 0", "The forward call behind SqrtBackward0", "  at ", "test_autograd");
}

TEST(AnomalyMode, WithoutTheCheckNaNPassesThrough) {
  const AnomalyModeGuard on(true, false);
  const Tensor x = leaf({1});
  makes_nan(x).sum().backward();
  EXPECT_TRUE(std::isnan(sample::elements(x.grad())[0]));
}

TEST(AnomalyMode, ANodeRecordedBeforeItIsNamedWithoutASite) {
  const Tensor x = leaf({1});
  const Tensor y = makes_nan(x).sum();
  const AnomalyModeGuard on;
  try {
    y.backward();
    ADD_FAILURE() << "no NaN was found";
  } catch (const AutogradError& error) {
    EXPECT_NE(std::string(error.what()).find("SqrtBackward0"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find("forward call"), std::string::npos);
  }
}

TEST(AnomalyMode, HoldsInBackwardsNestedMoreDeeplyThanOneThreadRunsThem) {
  constexpr int kDepth = 150;
  std::vector<std::pair<bool, bool>> modes;
  std::function<void(int)> at_depth = [&](int depth) {
    const EnableGradGuard recording;
    const Tensor y = leaf({1}) * 1;
    y.register_hook([&, depth](const Tensor&) {
      modes.emplace_back(is_anomaly_enabled(), is_anomaly_check_nan_enabled());
      if (depth > 1) at_depth(depth - 1);
      return Tensor();
    });
    y.sum().backward();
  };
  {
    const AnomalyModeGuard on;
    at_depth(kDepth);
  }
  EXPECT_EQ(modes, (std::vector<std::pair<bool, bool>>(kDepth, {true, true})));
  modes.clear();
  {
    const AnomalyModeGuard without_nan(true, false);
    at_depth(kDepth);
  }
  EXPECT_EQ(modes, (std::vector<std::pair<bool, bool>>(kDepth, {true, false})));
}

TEST(AnomalyMode, AVersionErrorSaysWhereTheForwardCallWas) {
  const Tensor x = leaf({1, 2});
  Tensor y, saved;
  {
    const AnomalyModeGuard on;
    saved = x * 1;
    y = saved.exp().mul(saved);
  }
  saved.detach().add_(saved.detach());
  EXPECT_THROWS(y.sum().backward(), AutogradError, "changed in place", "version 0", "version 1",
                "The forward call behind MulBackward0 was made here", "  at ");
}

TEST(AnomalyMode, ErrorsKeepTheirType) {
  const Tensor x = leaf({1});
  const AnomalyModeGuard on;
  EXPECT_THROWS(sample::failing(x).backward(), DataError, "[sample] the derivative failed.",
                "The forward call behind");
}

TEST(AnomalyMode, ANodeRecordedByABackwardNamesTheNodeThatDidIt) {
  const AnomalyModeGuard on;
  const Tensor x = leaf({0});
  GradOptions options;
  options.create_graph = true;
  const Tensor first = grad({(x * x * x.detach()).sum()}, {x}, {}, options)[0];
  ASSERT_NE(first.grad_fn(), nullptr);
  ASSERT_NE(first.grad_fn()->forward_site(), nullptr);
  const std::string text = first.grad_fn()->forward_site()->describe();
  EXPECT_NE(text.find("in a backward, by MulBackward0"), std::string::npos) << text;
  EXPECT_NE(text.find("which was recorded here:"), std::string::npos) << text;
}

TEST(AnomalyMode, ParentsAreFreedWithTheGraph) {
  std::weak_ptr<int> alive;
  {
    const AnomalyModeGuard on;
    const Tensor x = leaf({1});
    const auto token = std::make_shared<int>(1);
    alive = token;
    Tensor y = x * x;
    y.register_hook([token](const Tensor&) { return Tensor(); });
    GradOptions options;
    options.create_graph = true;
    const Tensor first = grad({y.sum()}, {x}, {}, options)[0];
    (first * first).sum().backward();
  }
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace lockstep
