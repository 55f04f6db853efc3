#include "core/device/arithmetic_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace lockstep {
namespace {

std::map<std::string, std::string> facts() {
  std::map<std::string, std::string> result;
  for (const ArithmeticFact& fact : arithmetic_facts()) {
    EXPECT_FALSE(fact.value.empty()) << fact.name;
    EXPECT_TRUE(result.emplace(fact.name, fact.value).second) << fact.name << " twice";
  }
  return result;
}

TEST(ArithmeticFacts, AreThoseOfTheBuildAndOfWhatComputes) {
  const auto found = facts();
  EXPECT_TRUE(found.contains("lockstep"));
  EXPECT_TRUE(found.contains("compiler"));
  EXPECT_TRUE(found.contains("C library"));
  EXPECT_THAT(found.at("kernels"), testing::AnyOf("avx2", "avx512"));
  EXPECT_THAT(found.at("oneDNN"), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+ with .+"));
}

TEST(ArithmeticFacts, AnyoneWhoComputesTellsItsOwn) {
  static std::string version = "1";
  register_arithmetic_fact("test library", [] { return version; });
  EXPECT_EQ(facts().at("test library"), "1");
  version = "2";
  EXPECT_EQ(facts().at("test library"), "2");
}

TEST(ArithmeticFacts, WhatADeviceComputesByIsAFactOfRunsOnItAlone) {
  register_arithmetic_fact(DeviceType::kHost, "test device",
                           [](int index) { return std::to_string(index); });
  EXPECT_FALSE(facts().contains("test device"));
  const auto found = arithmetic_facts({DeviceType::kHost, 3});
  EXPECT_EQ(found.back(), (ArithmeticFact{"test device", "3"}));
  EXPECT_EQ(found.size(), facts().size() + 1);
}

}  // namespace
}  // namespace lockstep
