#include "launcher/doctor/expected_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using train::Check;
using train::Health;

cuda::DeviceFacts gpu(const std::string& name, int major, int minor, int processors) {
  cuda::DeviceFacts facts;
  facts.name = name;
  facts.major = major;
  facts.minor = minor;
  facts.processors = processors;
  return facts;
}

TEST(ExpectedRates, OfProductsAreThoseOfTheDataSheets) {
  struct Sheet {
    cuda::DeviceFacts facts;
    double boost_mhz;
    double f32, tf32, half;  // TFLOP/s
  };
  const Sheet sheets[] = {
      {gpu("Tesla V100-SXM2-16GB", 7, 0, 80), 1530, 15.7, 0, 125},
      {gpu("Tesla T4", 7, 5, 40), 1590, 8.1, 0, 65},
      {gpu("NVIDIA A100-SXM4-80GB", 8, 0, 108), 1410, 19.5, 156, 312},
      {gpu("NVIDIA A40", 8, 6, 84), 1740, 37.4, 74.8, 149.7},
      {gpu("NVIDIA GeForce RTX 3090", 8, 6, 82), 1695, 35.6, 35.6 / 2, 71},
      {gpu("NVIDIA L40S", 8, 9, 142), 2520, 91.6, 183, 366},
      {gpu("NVIDIA L40", 8, 9, 142), 2490, 90.5, 90.5, 181},
      {gpu("NVIDIA H100 80GB HBM3", 9, 0, 132), 1830, 61.8, 495, 989},
      {gpu("NVIDIA B200", 10, 0, 148), 1850, 70, 1125, 2250},
  };
  for (const Sheet& sheet : sheets) {
    const auto tera = [&](ProductKind kind) {
      return product_peak(sheet.facts, kind, sheet.boost_mhz) / 1e12;
    };
    EXPECT_NEAR(tera(ProductKind::kF32), sheet.f32, 0.015 * sheet.f32) << sheet.facts.name;
    EXPECT_NEAR(tera(ProductKind::kHalf), sheet.half, 0.015 * sheet.half) << sheet.facts.name;
    if (sheet.facts.name.find("GeForce") == std::string::npos) {
      EXPECT_NEAR(tera(ProductKind::kTf32), sheet.tf32, 0.015 * sheet.tf32) << sheet.facts.name;
    }
  }
}

TEST(ExpectedRates, OfAProcessorThatTheTableDoesNotHaveAreNotKnown) {
  EXPECT_EQ(product_peak(gpu("NVIDIA X", 99, 0, 100), ProductKind::kHalf, 1000), 0);
}

TEST(ExpectedRates, OfMemoryFollowFromItsClockAndItsBus) {
  cuda::DeviceFacts h100 = gpu("NVIDIA H100 80GB HBM3", 9, 0, 132);
  h100.memory_clock_mhz = 2619;
  h100.memory_bus_bits = 5120;
  EXPECT_NEAR(memory_peak(h100) / 1e9, 3352, 1);
}

TEST(ExpectedRates, OfTheBusFollowFromGenerationAndLanes) {
  EXPECT_NEAR(pcie_peak(3, 16) / 1e9, 15.8, 0.1);
  EXPECT_NEAR(pcie_peak(5, 16) / 1e9, 63.0, 0.1);
  EXPECT_EQ(pcie_peak(9, 16), 0);
}

Rate memory_rate(double measured) {
  return {.subject = "cuda:0 memory",
          .measured = measured,
          .expected = 4917e9,
          .unit = "GB/s",
          .unit_size = 1e9,
          .how = "f32 additions of 256.0 MiB",
          .advice = "Its memory is slow."};
}

TEST(ExpectedRates, AHealthyDeviceIsWithinThem) {
  const Check check = rate_check(memory_rate(4320e9));
  EXPECT_EQ(check.health, Health::kOk);
  EXPECT_EQ(check.found, "4,320 GB/s, 88 % of 4,917 (f32 additions of 256.0 MiB)");
  EXPECT_THAT(check.advice, IsEmpty());
}

TEST(ExpectedRates, ASlowDeviceIsAWarningAndAVerySlowOneAFailure) {
  const Check slow = rate_check(memory_rate(0.69 * 4917e9));
  EXPECT_EQ(slow.health, Health::kWarn);
  EXPECT_THAT(slow.found, HasSubstr("69 % of 4,917"));
  EXPECT_EQ(slow.advice, "Its memory is slow.");
  const Check very_slow = rate_check(memory_rate(0.29 * 4917e9));
  EXPECT_EQ(very_slow.health, Health::kFail);
  EXPECT_EQ(very_slow.advice, "Its memory is slow.");
}

TEST(ExpectedRates, WhatIsNotExpectedIsNotJudged) {
  Rate rate = memory_rate(1e6);
  rate.expected = 0;
  const Check check = rate_check(rate);
  EXPECT_EQ(check.health, Health::kOk);
  EXPECT_EQ(check.found, "0.001 GB/s (f32 additions of 256.0 MiB)");
}

}  // namespace
}  // namespace lockstep::launcher
