#include "train/spike_samples.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lockstep::train {
namespace {

TEST(SpikeSamples, AreTheLargestAboveTheirShare) {
  const std::vector<double> losses = {1, 6, 1, 12};
  const std::vector<SampleOrigin> origins = {{"a.txt", "byte", 0},
                                             {"b.jsonl", "byte", 70, 3},
                                             {"c.txt", "byte", 9},
                                             {"d.txt", "token", 1234}};
  EXPECT_EQ(
      describe_largest(losses, origins),
      "sample 3 (d.txt, token 1234) has 60 % of the loss, sample 1 (b.jsonl:3, byte 70) 30 %");
}

TEST(SpikeSamples, AreAtMostThree) {
  EXPECT_EQ(describe_largest(std::vector<double>{4, 3, 5, 4, 0, 0, 0, 0}, {}),
            "sample 2 has 31 % of the loss, sample 0 25 %, sample 3 25 %");
}

TEST(SpikeSamples, NobodyStandsOutOfEqualLosses) {
  EXPECT_EQ(describe_largest(std::vector<double>{2, 2, 2}, {}), "");
  EXPECT_EQ(describe_largest({}, {}), "");
}

TEST(SpikeSamples, WhatIsNoNumberComesFirst) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(describe_largest(std::vector<double>{1, nan}, {}), "sample 1 has loss nan");
}

}  // namespace
}  // namespace lockstep::train
