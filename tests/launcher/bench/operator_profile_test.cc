#include "launcher/bench/operator_profile.h"

#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep::launcher {
namespace {

constexpr profile::MachinePeaks kPeaks{
    .f32_flops = 1e9, .bf16_flops = 2e9, .bytes_per_second = 1e9};

OperatorCost cost(DType dtype, int64_t flops, int64_t bytes) {
  return {Phase::kForward, "mm", dtype, {1, flops, bytes}, 0.5};
}

TEST(OperatorProfile, CountsCallsWorkAndTimeOfEachOperatorInEachDtype) {
  OperatorProfile profile(kCPU);
  {
    const ModeGuard on(profile);
    const Tensor a = ones({4, 8}), b = ones({8, 2});
    mm(a, b);
    mm(a, b);
    mm(a.to(DType::kF64), b.to(DType::kF64));
    a.t();
  }
  int64_t products = 0;
  for (const OperatorCost& each : profile.costs()) {
    if (each.name != "mm") continue;
    ++products;
    EXPECT_EQ(each.count.calls, each.dtype == DType::kF64 ? 1 : 2);
    EXPECT_EQ(each.count.flops, each.count.calls * 2 * 4 * 8 * 2);
    EXPECT_GT(each.seconds, 0);
  }
  EXPECT_EQ(products, 2);
  profile.reset();
  EXPECT_TRUE(profile.costs().empty());
}

TEST(OperatorProfile, TheLimitIsTheLongerOneOfArithmeticAndMemory) {
  EXPECT_DOUBLE_EQ(limit_seconds(cost(DType::kF32, 3'000'000, 1'000'000), kPeaks), 3e-3);
  EXPECT_DOUBLE_EQ(limit_seconds(cost(DType::kBF16, 3'000'000, 1'000'000), kPeaks), 1.5e-3);
  EXPECT_DOUBLE_EQ(limit_seconds(cost(DType::kF32, 3'000'000, 9'000'000), kPeaks), 9e-3);
}

TEST(OperatorProfile, TheTableEndsWithTheTimeBetweenOperatorsAndTheWholeStep) {
  OperatorCost large = cost(DType::kF32, 300'000'000, 0);  // 500 ms, 300 of them necessary
  OperatorCost small = cost(DType::kF32, 0, 0);
  small.name = "view";
  small.seconds = 1e-5;
  const std::string text = profile_table({large, small}, kPeaks, 1, 0.6);
  EXPECT_NE(text.find("mm "), std::string::npos) << text;
  EXPECT_EQ(text.find("view"), std::string::npos) << text;
  EXPECT_NE(text.find("(smaller ones)"), std::string::npos) << text;
  const std::string between = text.substr(text.find("between operators"));
  EXPECT_NE(between.find("99.990"), std::string::npos) << text;
  const std::string step = text.substr(text.find("step   "));
  EXPECT_NE(step.find("600.000"), std::string::npos) << text;
  EXPECT_NE(step.find("300.000"), std::string::npos) << text;  // both limit and loss
}

}  // namespace
}  // namespace lockstep::launcher
