#include "train/run/non_finite.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(NonFiniteGuard, StopsAtTheFirstWhenToldTo) {
  NonFiniteGuard guard(NonFinite::kStop, 10);
  guard.after(0, true);
  EXPECT_EQ(guard.after(1, false), NonFinite::kStop);
}

TEST(NonFiniteGuard, GivesUpAfterTheLimitInARow) {
  NonFiniteGuard guard(NonFinite::kSkip, 3);
  for (int64_t step = 0; step < 3; ++step) EXPECT_EQ(guard.after(step, false), NonFinite::kSkip);
  EXPECT_EQ(guard.after(3, false), NonFinite::kStop);
}

TEST(NonFiniteGuard, AFiniteStepForgives) {
  NonFiniteGuard guard(NonFinite::kSkip, 2);
  for (int64_t step = 0; step < 100; step += 2) {
    EXPECT_EQ(guard.after(step, false), NonFinite::kSkip);
    guard.after(step + 1, true);
  }
}

TEST(NonFiniteGuard, StepsRepeatedAfterARollbackAreNoProgress) {
  NonFiniteGuard guard(NonFinite::kRollback, 3);
  for (int round = 0; round < 3; ++round) {
    for (int64_t step = 5; step < 9; ++step) guard.after(step, true);
    EXPECT_EQ(guard.after(9, false), NonFinite::kRollback);
  }
  EXPECT_EQ(guard.after(9, false), NonFinite::kStop);
}

}  // namespace
}  // namespace lockstep::train
