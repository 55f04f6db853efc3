#include "dist/group/thread_control.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/core/expect_error.h"

// Requirements shared with the other JobControl are in job_control_test.cc.

namespace lockstep::dist {
namespace {

TEST(ThreadJob, RefusesWhatIsNoRankAndASecondOfOne) {
  expect_error<DistError>([] { ThreadJob job(0); }, "at least 1 rank, not 0");
  ThreadJob job(2);
  EXPECT_EQ(job.size(), 2);
  expect_error<DistError>([&] { (void)job.control(2); }, "no rank 2 in a job of 2");
  expect_error<DistError>([&] { (void)job.control(-1); }, "no rank -1");
  const auto control = job.control(1);
  expect_error<DistError>([&] { (void)job.control(1); }, "rank 1 has its control already");
  control->leave();
}

TEST(ThreadJob, ControlsOutliveTheJob) {
  auto job = std::make_unique<ThreadJob>(2);
  const auto first = job->control(0);
  auto second = job->control(1);
  job.reset();
  second->fail("bad");
  EXPECT_EQ(first->failure()->text, "bad");
  second.reset();
  EXPECT_EQ(first->failure()->rank, 1);
}

TEST(ThreadJob, AFailureIsKnownWhenFailReturns) {
  ThreadJob job(3);
  const auto first = job.control(0);
  const auto last = job.control(2);
  last->fail("out of data");
  ASSERT_TRUE(first->failure());
  ASSERT_TRUE(last->failure());
  // The failure also reaches a control that is made later.
  const auto late = job.control(1);
  ASSERT_TRUE(late->failure());
  EXPECT_EQ(late->failure()->text, "out of data");
}

}  // namespace
}  // namespace lockstep::dist
