#include "kernels/common/bias_correction.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(BiasCorrection, IsRightButForTwoRoundings) {
  for (const double beta : {0.5, 0.8, 0.9, 0.95, 0.98, 0.999, 0.9999, 0.99999}) {
    for (int64_t step = 1; step < 5'000'000; step += 1 + step / 50) {
      const long double want = 1 - std::pow(static_cast<long double>(beta), step);
      const double got = bias_correction(beta, static_cast<double>(step));
      // Both the power and the difference are rounded to f64: an error of 3/4 ulp in all.
      ASSERT_LE(std::abs(got - want), 0.7501L * 0x1p-53L) << beta << " to the power of " << step;
    }
  }
}

TEST(BiasCorrection, HasTheLimitsOfTheFormula) {
  EXPECT_EQ(bias_correction(0, 1), 1);
  EXPECT_EQ(bias_correction(0.9, 1), 1 - 0.9);
  EXPECT_EQ(bias_correction(0.9, 0), 0);
  EXPECT_EQ(bias_correction(0.9, 0x1p52), 1);
}

}  // namespace
}  // namespace lockstep
