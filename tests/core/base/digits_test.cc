#include "core/base/digits.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(Digits, AreGroupedInThrees) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(Digits, LargeBoundsAreWrittenAsPowers) {
  EXPECT_EQ(bound_text(int64_t{65536}), "65536");
  EXPECT_EQ(bound_text(int64_t{1} << 50), "2^50");
  EXPECT_EQ(bound_text(-(int64_t{1} << 50)), "-2^50");
  EXPECT_EQ(bound_text(int64_t{1000000}), "1000000");
  EXPECT_EQ(bound_text(int64_t{1000000000000}), "10^12");
  EXPECT_EQ(bound_text(std::numeric_limits<uint64_t>::max()), "2^64 - 1");
  EXPECT_EQ(bound_text(std::numeric_limits<int64_t>::max()), "2^63 - 1");
  EXPECT_EQ(bound_text(int64_t{20000000}), "20000000");
}

TEST(Digits, RealBoundsHaveTheDigitsThatTheyNeed) {
  EXPECT_EQ(bound_text(0.9), "0.9");
  EXPECT_EQ(bound_text(1000.0), "1000");
  EXPECT_EQ(bound_text(1e9), "10^9");
  EXPECT_EQ(bound_text(1e30), "10^30");
  EXPECT_EQ(bound_text(1e-6), "10^-6");
}

}  // namespace
}  // namespace lockstep
