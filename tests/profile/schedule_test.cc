#include "profile/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "tests/core/expect_error.h"

namespace lockstep::profile {
namespace {

/// A letter for each step: n(one), w(armup), r(ecorded), R: the last of its cycle.
std::string plan(const Schedule& schedule, int64_t steps) {
  std::string text;
  for (int64_t i = 0; i < steps; ++i) {
    const StepAction action = action_of(schedule, i);
    text += ends_cycle(schedule, i)         ? 'R'
            : action == StepAction::kRecord ? 'r'
            : action == StepAction::kWarmUp ? 'w'
                                            : 'n';
  }
  return text;
}

TEST(Schedule, WaitsWarmsUpRecordsAndEnds) {
  EXPECT_EQ(plan({}, 14), "nnnnnwwrrRnnnn");
  EXPECT_EQ(plan({.wait = 0, .warmup = 0, .active = 1}, 3), "Rnn");
}

TEST(Schedule, RepeatsAsOftenAsItSays) {
  EXPECT_EQ(plan({.wait = 1, .warmup = 1, .active = 2, .repeat = 2}, 10), "nwrRnwrRnn");
  EXPECT_EQ(plan({.wait = 1, .warmup = 0, .active = 1, .repeat = 0}, 7), "nRnRnRn");
}

TEST(Schedule, ReadsTheTextOfACommandLine) {
  EXPECT_EQ(parse_schedule(""), Schedule{});
  EXPECT_EQ(parse_schedule("wait=1,warmup=0,active=7,repeat=2"), (Schedule{1, 0, 7, 2}));
  EXPECT_EQ(parse_schedule("active=9"), (Schedule{.active = 9}));
  const Schedule schedule{1, 2, 3, 4};
  EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
}

TEST(Schedule, WhatIsNotUnderstoodIsNamed) {
  expect_error<ConfigError>([] { (void)parse_schedule("wait=1,activ=3"); }, "no part \"activ=3\"");
  expect_error<ConfigError>([] { (void)parse_schedule("wait"); }, "no part \"wait\"");
  expect_error<ConfigError>([] { (void)parse_schedule("wait=x"); }, "wait is no number of steps");
  expect_error<ConfigError>([] { (void)parse_schedule("warmup=-1"); }, "got \"-1\"");
  expect_error<ConfigError>([] { (void)parse_schedule("active=0"); }, "records no step");
  expect_error<ConfigError>([] { (void)parse_schedule(",active=1"); }, "no part \"\"");
}

}  // namespace
}  // namespace lockstep::profile
