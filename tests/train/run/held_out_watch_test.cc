#include "train/run/held_out_watch.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::train {
namespace {

TEST(HeldOutWatch, TheLowestLossIsTheBest) {
  HeldOutWatch watch({.keep_best = true});
  EXPECT_EQ(watch.best_step(), std::nullopt);
  EXPECT_TRUE(watch.add(10, 2.0));
  EXPECT_FALSE(watch.add(20, 2.5));
  EXPECT_FALSE(watch.add(30, 2.0));
  EXPECT_TRUE(watch.add(40, 1.9));
  EXPECT_EQ(watch.best_step(), 40);
  EXPECT_FALSE(watch.is_over());
}

TEST(HeldOutWatch, TrainingEndsAfterPatienceIsUsedUp) {
  HeldOutWatch watch({.patience = 2});
  watch.add(1, 2.0);
  watch.add(2, 2.1);
  EXPECT_FALSE(watch.is_over());
  watch.add(3, 1.9);
  watch.add(4, 1.9);
  EXPECT_FALSE(watch.is_over());
  watch.add(5, 2.0);
  EXPECT_TRUE(watch.is_over());
  EXPECT_EQ(watch.best_step(), std::nullopt) << "without keep_best";
  EXPECT_EQ(watch.reason(),
            "training ends: the held-out loss has not fallen for 2 evaluations "
            "(train.early_stopping.patience); it was lowest, 1.9000, after step 3");
}

TEST(HeldOutWatch, SmallFallsDoNotCountForPatienceButAreTheBest) {
  HeldOutWatch watch({.patience = 2, .min_delta = 0.5, .keep_best = true});
  watch.add(1, 2.0);
  EXPECT_TRUE(watch.add(2, 1.8));
  EXPECT_TRUE(watch.add(3, 1.6));
  EXPECT_TRUE(watch.is_over());
  EXPECT_EQ(watch.reason(),
            "training ends: the held-out loss has not fallen by more than 0.5 for 2 evaluations "
            "(train.early_stopping.patience); it was lowest, 1.6000, after step 3");
  // Together they count: the reference stays until one is far enough below it.
  HeldOutWatch other({.patience = 2, .min_delta = 0.5});
  other.add(1, 2.0);
  other.add(2, 1.8);
  other.add(3, 1.4);
  EXPECT_FALSE(other.is_over());
}

TEST(HeldOutWatch, ALossThatIsNotFiniteIsNoImprovement) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  HeldOutWatch watch({.patience = 1, .keep_best = true});
  EXPECT_FALSE(watch.add(1, nan));
  EXPECT_FALSE(watch.is_over());
  EXPECT_TRUE(watch.add(2, 3.0));
  EXPECT_FALSE(watch.add(3, nan));
  EXPECT_TRUE(watch.is_over());
}

TEST(HeldOutWatch, GoesOnFromWhatItRemembers) {
  HeldOutWatch first({.patience = 2});
  first.add(1, 2.0);
  first.add(2, 2.1);
  HeldOutWatch second({.patience = 2});
  second.remember(first.memory());
  second.add(3, 2.2);
  EXPECT_TRUE(second.is_over());
  EXPECT_EQ(second.memory()->lowest_step, 1);
}

}  // namespace
}  // namespace lockstep::train
