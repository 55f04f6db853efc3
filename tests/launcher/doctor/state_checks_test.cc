#include "launcher/doctor/state_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::launcher {
namespace {

using cuda::DeviceState;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using train::Check;
using train::Health;

DeviceState healthy() {
  DeviceState state;
  state.driver = "580.65.06";
  state.clock_mhz = 1755;
  state.most_clock_mhz = 1980;
  state.memory_clock_mhz = 2619;
  state.most_memory_clock_mhz = 2619;
  state.clock_limits = cuda::kPowerLimit;
  state.ecc = true;
  state.corrected_errors = 0;
  state.uncorrected_errors = 0;
  state.uncorrected_errors_ever = 0;
  state.celsius = 41;
  state.slowdown_celsius = 87;
  state.watts = 118;
  state.limit_watts = 700;
  state.default_limit_watts = 700;
  state.used_bytes = 0;
  return state;
}

/// The check of this kind ("ECC") of cuda:0.
Check found(const DeviceState& state, const std::string& kind) {
  for (const Check& check : state_checks("cuda:0", state)) {
    if (check.subject == "cuda:0 " + kind) return check;
  }
  ADD_FAILURE() << "no check of " << kind;
  return {};
}

Check clocks(const DeviceState& state) {
  const std::vector<Check> checks = clock_check("cuda:0", state);
  return checks.empty() ? Check{} : checks.front();
}

TEST(StateChecks, OfAHealthyDeviceAreAllOk) {
  for (const Check& check : state_checks("cuda:0", healthy())) {
    EXPECT_EQ(check.health, Health::kOk) << check.subject << ": " << check.found;
    EXPECT_THAT(check.advice, IsEmpty()) << check.subject;
  }
  EXPECT_EQ(found(healthy(), "ECC").found, "on, no uncorrected errors, no corrected errors");
  EXPECT_EQ(found(healthy(), "temperature").found, "41 C (slows down at 87), 118 W, at most 700 W");
  EXPECT_EQ(found(healthy(), "processes").found, "no other process");
}

TEST(StateChecks, ClocksThatThePowerLimitHoldsBackALittleAreOk) {
  const Check check = clocks(healthy());
  EXPECT_EQ(check.health, Health::kOk);
  EXPECT_EQ(check.found,
            "processors 1,755 of 1,980 MHz, memory 2,619 of 2,619 MHz under load; held back by the "
            "power limit");
}

TEST(StateChecks, ClocksThatHeatHoldsBackAreAWarning) {
  DeviceState state = healthy();
  state.clock_limits = cuda::kHardwareSlowdown | cuda::kHardwareHeat;
  const Check check = clocks(state);
  EXPECT_EQ(check.health, Health::kWarn);
  EXPECT_THAT(check.found, HasSubstr("a slowdown of the hardware, heat (hardware)"));
  EXPECT_THAT(check.advice, HasSubstr("fans"));
}

TEST(StateChecks, LowClocksAreAWarningAndVeryLowOnesAFailure) {
  DeviceState state = healthy();
  state.clock_mhz = 1300;
  EXPECT_EQ(clocks(state).health, Health::kWarn);
  state.clock_mhz = 510;
  EXPECT_EQ(clocks(state).health, Health::kFail);
  state = healthy();
  state.memory_clock_mhz = 405;
  EXPECT_EQ(clocks(state).health, Health::kFail);
  EXPECT_THAT(clocks(state).advice, HasSubstr("nvidia-smi -rgc"));
}

TEST(StateChecks, ClocksThatNobodyTellsAreLeftOut) {
  EXPECT_THAT(clock_check("cuda:0", DeviceState{}), IsEmpty());
}

TEST(StateChecks, UncorrectedErrorsAreAFailure) {
  DeviceState state = healthy();
  state.uncorrected_errors = 2;
  state.uncorrected_errors_ever = 5;
  const Check check = found(state, "ECC");
  EXPECT_EQ(check.health, Health::kFail);
  EXPECT_THAT(check.found, AllOf(HasSubstr("2 uncorrected errors"), HasSubstr("5 uncorrected in")));
  EXPECT_THAT(check.advice, HasSubstr("nvidia-smi -r"));
}

TEST(StateChecks, ErrorsOfAnEarlierLifeAreToldAndNoMore) {
  DeviceState state = healthy();
  state.uncorrected_errors_ever = 1;
  EXPECT_EQ(found(state, "ECC").health, Health::kOk);
  EXPECT_THAT(found(state, "ECC").found, HasSubstr("1 uncorrected in its life"));
}

TEST(StateChecks, RepairsThatWaitAreAWarningAndThoseThatFailedAFailure) {
  DeviceState state = healthy();
  state.repair_waits = true;
  EXPECT_EQ(found(state, "ECC").health, Health::kWarn);
  EXPECT_THAT(found(state, "ECC").advice, HasSubstr("Reset the GPU"));
  state.repair_failed = true;
  EXPECT_EQ(found(state, "ECC").health, Health::kFail);
  EXPECT_THAT(found(state, "ECC").advice, HasSubstr("replace it"));
}

TEST(StateChecks, EccThatIsOffIsAWarningAndOneThatIsNotThereIsNone) {
  DeviceState state = healthy();
  state.ecc = false;
  EXPECT_EQ(found(state, "ECC").health, Health::kWarn);
  state.ecc.reset();
  EXPECT_EQ(found(state, "ECC").health, Health::kOk);
}

TEST(StateChecks, AHotDeviceAndALowPowerLimitAreWarnings) {
  DeviceState hot = healthy();
  hot.celsius = 88;
  EXPECT_EQ(found(hot, "temperature").health, Health::kWarn);
  DeviceState limited = healthy();
  limited.limit_watts = 300;
  EXPECT_EQ(found(limited, "temperature").health, Health::kWarn);
  EXPECT_THAT(found(limited, "temperature").found, HasSubstr("at most 300 W instead of 700"));
}

TEST(StateChecks, MemoryOfOtherProcessesIsAWarningThatNamesThem) {
  DeviceState state = healthy();
  state.used_bytes = uint64_t{31} << 30;
  state.processes = {{.pid = 4121, .bytes = uint64_t{30} << 30}, {.pid = 7, .bytes = {}}};
  const Check check = found(state, "processes");
  EXPECT_EQ(check.health, Health::kWarn);
  EXPECT_EQ(check.found, "process 4121 holds 30.0 GiB, process 7");
}

TEST(StateChecks, MemoryOfProcessesThatAreNotShownIsAWarning) {
  DeviceState state = healthy();
  state.used_bytes = uint64_t{20} << 30;
  EXPECT_EQ(found(state, "processes").health, Health::kWarn);
  EXPECT_EQ(found(state, "processes").found,
            "20.0 GiB are in use by processes that are not shown here");
}

TEST(StateChecks, LinksThatAreDownAreAWarning) {
  DeviceState state = healthy();
  state.links_up = 18;
  EXPECT_EQ(found(state, "NVLink").health, Health::kOk);
  state.links_up = 12;
  state.links_down = 6;
  EXPECT_EQ(found(state, "NVLink").health, Health::kWarn);
  EXPECT_EQ(found(state, "NVLink").found, "12 of 18 links are up");
}

TEST(StateChecks, WithoutNvmlTheReasonIsAWarningAndALostDeviceAFailure) {
  DeviceState state;
  state.reason = "NVML cannot be used: no such file";
  const Check missing = found(state, "state");
  EXPECT_EQ(missing.health, Health::kWarn);
  EXPECT_EQ(missing.found, state.reason);
  EXPECT_THAT(missing.advice, HasSubstr("libnvidia-ml.so.1"));
  state.is_lost = true;
  EXPECT_EQ(found(state, "state").health, Health::kFail);
}

}  // namespace
}  // namespace lockstep::launcher
