#include "kernels/common/elementary.h"

#include <gtest/gtest.h>

#include "tests/core/non_finite.h"
#include "tests/kernels/worst_error.h"

namespace lockstep {
namespace {

TEST(Elementary, ExpIsAccurateOverAllFloats) {
  EXPECT_LT(worst_error(
                exp_f32, [](double x) { return std::exp(x); }, -3.4e38F, 3.4e38F),
            1.1);
}

TEST(Elementary, LogIsAccurateOverAllFloats) {
  EXPECT_LT(worst_error(
                log_f32, [](double x) { return std::log(x); }, -3.4e38F, 3.4e38F),
            0.9);
}

TEST(Elementary, TanhIsAccurateOverAllFloats) {
  EXPECT_LT(worst_error(
                tanh_f32, [](double x) { return std::tanh(x); }, -3.4e38F, 3.4e38F),
            1.4);
}

TEST(Elementary, SigmoidIsAccurateWhereItIsNormal) {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(worst_error(sigmoid_f32, exact, -86.0F, 3.4e38F), 2.6);
}

TEST(Elementary, SineAndCosineAreAccurateUpToTheirLimit) {
  const auto sine = [](float x) { return sincos_f32(x).sine; };
  const auto cosine = [](float x) { return sincos_f32(x).cosine; };
  EXPECT_LT(worst_error(
                sine, [](double x) { return std::sin(x); }, -kMaxAngleF32, kMaxAngleF32),
            1.6);
  EXPECT_LT(worst_error(
                cosine, [](double x) { return std::cos(x); }, -kMaxAngleF32, kMaxAngleF32),
            1.6);
}

TEST(Elementary, TurnsGoRoundTheCircle) {
  for (int i = 0; i <= 4096; ++i) {
    const float turns = static_cast<float>(i) / 4096;
    const double angle = 2 * 3.14159265358979323846 * turns;
    EXPECT_NEAR(sincos_turns_f32(turns).sine, std::sin(angle), 1.5e-7) << turns;
    EXPECT_NEAR(sincos_turns_f32(turns).cosine, std::cos(angle), 1.5e-7) << turns;
  }
}

TEST(Elementary, NormalDistributionKeepsTheDigitsOfItsTails) {
  for (float x = -12.5F; x < 12.5F; x += 0.001F) {
    const NormalDistribution<double> wanted = normal_distribution(static_cast<double>(x));
    const NormalDistribution<float> got = normal_distribution(x);
    EXPECT_NEAR(got.below, wanted.below, 6e-7 * wanted.below) << x;
    EXPECT_NEAR(got.bell, wanted.bell, 2e-7 * wanted.bell) << x;
  }
}

TEST(Elementary, SpecialValuesBehaveAsInTheStandardLibrary) {
  EXPECT_EQ(exp_f32(kInfinityF32), kInfinityF32);
  EXPECT_EQ(exp_f32(-kInfinityF32), 0.0F);
  EXPECT_EQ(exp_f32(0.0F), 1.0F);
  EXPECT_EQ(exp_f32(89.5F), kInfinityF32);
  EXPECT_EQ(exp_f32(-100.0F), std::exp(-100.0F)) << "a subnormal result";
  EXPECT_TRUE(std::isnan(exp_f32(kNaNF32)));
  EXPECT_EQ(log_f32(0.0F), -kInfinityF32);
  EXPECT_EQ(log_f32(1.0F), 0.0F);
  EXPECT_EQ(log_f32(kInfinityF32), kInfinityF32);
  EXPECT_TRUE(std::isnan(log_f32(-1.0F)));
  EXPECT_TRUE(std::isnan(log_f32(kNaNF32)));
  EXPECT_NEAR(log_f32(1e-45F), std::log(1e-45F), 1e-5) << "a subnormal argument";
  EXPECT_EQ(tanh_f32(kInfinityF32), 1.0F);
  EXPECT_EQ(tanh_f32(-kInfinityF32), -1.0F);
  EXPECT_TRUE(std::signbit(tanh_f32(-0.0F)));
  EXPECT_TRUE(std::isnan(tanh_f32(kNaNF32)));
  EXPECT_EQ(sigmoid_f32(-kInfinityF32), 0.0F);
  EXPECT_EQ(sigmoid_f32(kInfinityF32), 1.0F);
  EXPECT_EQ(normal_distribution(kInfinityF32).below, 1.0F);
  EXPECT_EQ(normal_distribution(-kInfinityF32).below, 0.0F);
  EXPECT_TRUE(std::isnan(normal_distribution(kNaNF32).below));
}

}  // namespace
}  // namespace lockstep
