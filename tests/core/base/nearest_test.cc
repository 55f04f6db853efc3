#include "core/base/nearest.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"learning_rate", "weight_decay", "relu", "gelu",
                                                    "F32"};

TEST(Nearest, FindsTheNameWithALetterMissingAddedChangedOrSwapped) {
  EXPECT_EQ(nearest("learning_rat", kNames), "learning_rate");
  EXPECT_EQ(nearest("learning_ratee", kNames), "learning_rate");
  EXPECT_EQ(nearest("weight-decay", kNames), "weight_decay");
  EXPECT_EQ(nearest("wieght_decay", kNames), "weight_decay");
  EXPECT_EQ(nearest("F23", kNames), "F32");
}

TEST(Nearest, TreatsUpperAndLowerCaseAlike) {
  EXPECT_EQ(nearest("LEARNING_RATE", kNames), "learning_rate");
  EXPECT_EQ(nearest("f32", kNames), "F32");
}

TEST(Nearest, SuggestsNothingFarAway) {
  EXPECT_EQ(nearest("momentum", kNames), std::nullopt);
  EXPECT_EQ(nearest("", kNames), std::nullopt);
  EXPECT_EQ(nearest("x", kNames), std::nullopt);
  EXPECT_EQ(nearest("lr", kNames), std::nullopt);
  EXPECT_EQ(nearest("relu", {}), std::nullopt);
}

TEST(Nearest, TakesTheClosestAndAmongEqualsTheFirst) {
  EXPECT_EQ(nearest("gel", kNames), "gelu");
  EXPECT_EQ(nearest("selu", kNames), "relu");
}

TEST(Nearest, RefusesInputFarLongerThanAnyNameWithoutWork) {
  EXPECT_EQ(nearest(std::string(1 << 24, 'a'), kNames), std::nullopt);
}

}  // namespace
}  // namespace lockstep
