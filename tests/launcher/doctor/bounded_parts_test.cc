#include "launcher/doctor/bounded_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace lockstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::HasSubstr;
using train::Check;
using train::Health;

Part gives(const std::string& subject) {
  return {subject, [subject] { return std::vector<Check>{{subject, Health::kOk, "well", ""}}; }};
}

TEST(BoundedParts, RunInTheirOrder) {
  const Examined examined = examine({gives("a"), gives("b")}, minutes(5));
  ASSERT_EQ(examined.checks.size(), 2U);
  EXPECT_EQ(examined.checks[0].subject, "a");
  EXPECT_EQ(examined.checks[1].subject, "b");
  EXPECT_FALSE(examined.hangs);
}

TEST(BoundedParts, APartThatThrowsIsAFailureAndTheOthersGoOn) {
  const Part throws{"a", []() -> std::vector<Check> { throw DeviceError("it broke"); }};
  const Examined examined = examine({throws, gives("b")}, minutes(5));
  ASSERT_EQ(examined.checks.size(), 2U);
  EXPECT_EQ(examined.checks[0].health, Health::kFail);
  EXPECT_EQ(examined.checks[0].advice, "it broke");
  EXPECT_EQ(examined.checks[1].health, Health::kOk);
}

TEST(BoundedParts, APartThatHangsIsAFailureAndWhatWasNotReachedIsSaid) {
  const auto release = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  const Part hangs{"b", [release, ended] {
                     release->get_future().wait();
                     ended->set_value();
                     return std::vector<Check>();
                   }};
  const Examined examined = examine({gives("a"), hangs, gives("c")}, milliseconds(200));
  release->set_value();
  ASSERT_EQ(examined.checks.size(), 3U);
  EXPECT_TRUE(examined.hangs);
  EXPECT_EQ(examined.checks[0].found, "well");
  EXPECT_EQ(examined.checks[1].subject, "b");
  EXPECT_EQ(examined.checks[1].health, Health::kFail);
  EXPECT_THAT(examined.checks[1].found, HasSubstr("no answer within the limit of 0.2 s"));
  EXPECT_EQ(examined.checks[2].subject, "c");
  EXPECT_EQ(examined.checks[2].health, Health::kWarn);
  EXPECT_THAT(examined.checks[2].found, HasSubstr("not reached"));
  ended->get_future().wait();
}

TEST(BoundedParts, WithoutTimeNothingBegins) {
  const Examined examined = examine({gives("a")}, milliseconds(0));
  ASSERT_EQ(examined.checks.size(), 1U);
  EXPECT_FALSE(examined.hangs);
  EXPECT_EQ(examined.checks[0].health, Health::kWarn);
}

}  // namespace
}  // namespace lockstep::launcher
