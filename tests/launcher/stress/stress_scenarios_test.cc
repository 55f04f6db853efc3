#include "launcher/stress/stress_scenarios.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "core/device/device_runtime.h"
#include "core/memory/cpu_memory.h"
#include "tests/launcher/stress/findings.h"

namespace lockstep {
namespace {

class Scenario : public testing::TestWithParam<StressScenario> {};

TEST_P(Scenario, KeepsItsPromiseOnTheHostDevice) {
  const ScenarioReport report =
      run_scenario(GetParam(), kHost, require_runtime(kHost).memory(0), {}, 3);
  EXPECT_TRUE(report.passed()) << lines_of(report.findings);
  EXPECT_GT(report.operations, 0);
  EXPECT_NE(report.measured, "");
}

TEST_P(Scenario, KeepsItsPromiseOnTheCpu) {
  CpuMemory memory(size_t{8} << 30);
  const ScenarioReport report = run_scenario(GetParam(), kCPU, memory, {}, 3);
  EXPECT_TRUE(report.passed()) << lines_of(report.findings);
}

INSTANTIATE_TEST_SUITE_P(Known, Scenario,
                         testing::ValuesIn(stress_scenarios().begin(), stress_scenarios().end()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Scenarios, TellPlainSegmentsFromExpandableOnes) {
  // The scenario must fail with plain segments, or it would prove nothing.
  AllocatorOptions plain;
  plain.expandable_segments = false;
  const StressScenario* scenario = find_stress_scenario("fragmented-small");
  ASSERT_NE(scenario, nullptr);
  EXPECT_THROW(scenario->run(kHost, require_runtime(kHost).memory(0), plain, 3), OutOfMemoryError);
}

TEST(Scenarios, UnknownNamesAreNone) { EXPECT_EQ(find_stress_scenario("none"), nullptr); }

}  // namespace
}  // namespace lockstep
