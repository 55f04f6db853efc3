#include "kernels/common/special.h"

#include <gtest/gtest.h>

#include "kernels/common/gamma.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/worst_error.h"

namespace lockstep {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();

struct Approximation {
  const char* name;
  float (*approximation)(float);
  double (*exact)(double);
  double ulp;
  float lowest = -kMax;
  float highest = kMax;
};
const Approximation kFunctions[] = {
    {"exp2", exp2_f32, [](double x) { return std::exp2(x); }, 1.1},
    {"expm1", expm1_f32, [](double x) { return std::expm1(x); }, 1.5},
    {"log1p", log1p_f32, [](double x) { return std::log1p(x); }, 1.6},
    {"log2", log2_f32, [](double x) { return std::log2(x); }, 1.9},
    {"log10", log10_f32, [](double x) { return std::log10(x); }, 2.0},
    {"tan", tan_f32, [](double x) { return std::tan(x); }, 3.5, -kMaxAngleF32, kMaxAngleF32},
    {"asin", asin_f32, [](double x) { return std::asin(x); }, 2.5},
    {"acos", acos_f32, [](double x) { return std::acos(x); }, 1.3},
    {"atan", atan_f32, [](double x) { return std::atan(x); }, 1.4},
    {"sinh", sinh_f32, [](double x) { return std::sinh(x); }, 4},
    {"cosh", cosh_f32, [](double x) { return std::cosh(x); }, 3.2},
    {"asinh", asinh_f32, [](double x) { return std::asinh(x); }, 2.5},
    {"acosh", acosh_f32, [](double x) { return std::acosh(x); }, 2.5},
    {"atanh", atanh_f32, [](double x) { return std::atanh(x); }, 2.7},
    {"erf", erf_f32, [](double x) { return std::erf(x); }, 2.7},
    {"erfc", erfc_f32, [](double x) { return std::erfc(x); }, 10, -kMax, 9},
};

TEST(SpecialFunctions, AreAccurateOverAllFloats) {
  for (const Approximation& f : kFunctions) {
    EXPECT_LT(worst_error(f.approximation, f.exact, f.lowest, f.highest), f.ulp) << f.name;
  }
}

TEST(SpecialFunctions, TakeTheLimitsOfTheDoubleFunctions) {
  for (const Approximation& f : kFunctions) {
    if (f.highest < kMax && f.lowest > -kMax) continue;  // the kernel uses another formula
    SCOPED_TRACE(f.name);
    for (const float x : {kInfinityF32, -kInfinityF32, 0.0F, -0.0F, 1.0F, -1.0F, 2.0F,
                          std::numeric_limits<float>::quiet_NaN()}) {
      const double wanted = f.exact(static_cast<double>(x));
      const float got = f.approximation(x);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(got)) << x;
      } else if (std::isinf(wanted) || wanted == 0) {
        EXPECT_EQ(static_cast<double>(got), wanted) << x;
        EXPECT_EQ(std::signbit(got), std::signbit(wanted)) << x;
      } else {
        EXPECT_NEAR(got, wanted, 6e-7 * std::abs(wanted)) << x;
      }
    }
  }
}

TEST(SpecialFunctions, LogarithmsOfPowersAreExact) {
  for (int i = -126; i < 128; ++i) {
    EXPECT_EQ(log2_f32(std::ldexp(1.0F, i)), static_cast<float>(i));
    EXPECT_EQ(exp2_f32(static_cast<float>(i)), std::ldexp(1.0F, i));
  }
  for (const float power : {1.0F, 10.0F, 100.0F, 1e3F, 1e4F, 1e5F, 1e6F, 1e10F}) {
    EXPECT_EQ(log10_f32(power), static_cast<float>(std::log10(static_cast<double>(power))));
  }
}

TEST(SpecialFunctions, TwoArgumentArcTangentKnowsAllQuadrantsAndZeros) {
  const float values[] = {0.0F,   -0.0F, 1.0F,         -1.0F,        1e-30F,
                          -3e30F, 0.3F,  kInfinityF32, -kInfinityF32};
  for (const float y : values) {
    for (const float x : values) {
      const double wanted = std::atan2(static_cast<double>(y), static_cast<double>(x));
      const float got = atan2_f32(y, x);
      EXPECT_NEAR(got, wanted, 2.5e-7 * std::abs(wanted)) << y << " " << x;
      EXPECT_EQ(std::signbit(got), std::signbit(wanted)) << y << " " << x;
    }
  }
  EXPECT_TRUE(std::isnan(atan2_f32(std::numeric_limits<float>::quiet_NaN(), 1.0F)));
  EXPECT_TRUE(std::isnan(atan2_f32(1.0F, std::numeric_limits<float>::quiet_NaN())));
}

TEST(Gamma, DigammaIsTheSlopeOfLogGamma) {
  constexpr double kStep = 1e-6;
  for (double x = -3.4; x < 30; x += 0.21) {
    const double slope = (log_gamma(x + kStep) - log_gamma(x - kStep)) / (2 * kStep);
    EXPECT_NEAR(digamma(x), slope, 1e-7 * (1 + std::abs(slope))) << x;
  }
  EXPECT_NEAR(digamma(1), -0.57721566490153286061, 1e-15);
}

TEST(Gamma, PolygammaIsTheSlopeOfTheOneBelow) {
  constexpr double kStep = 1e-5;
  for (int64_t n = 1; n <= 4; ++n) {
    const auto below = [n](double x) { return n == 1 ? digamma(x) : polygamma(n - 1, x); };
    for (double x = -2.63; x < 20; x += 0.24) {
      const double slope = (below(x + kStep) - below(x - kStep)) / (2 * kStep);
      EXPECT_NEAR(polygamma(n, x), slope, 1e-5 * (1 + std::abs(slope))) << n << " " << x;
    }
  }
  constexpr double kPi = 3.14159265358979323846;
  EXPECT_NEAR(polygamma(1, 1), kPi * kPi / 6, 1e-14);
  EXPECT_NEAR(polygamma(1, 0.5), kPi * kPi / 2, 1e-13);
}

TEST(Gamma, PolesAreInfiniteOrUndefined) {
  EXPECT_EQ(digamma(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(digamma(-0.0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(digamma(-3)));
  EXPECT_TRUE(std::isinf(log_gamma(-3)));
  EXPECT_EQ(polygamma(1, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(polygamma(2, 0), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lockstep
