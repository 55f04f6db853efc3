#include "train/report/step_overlap.h"

#include <gtest/gtest.h>

#include <exception>

#include "dist/group/thread_group.h"

namespace lockstep::train {
namespace {

TEST(StepOverlap, OfAllRanksIsTheLatestOfEachTime) {
  const StepOverlap ranks[] = {{.seconds = 3,
                                .backward_end = 1,
                                .exposed = 0.5,
                                .bytes = {4, 8},
                                .ready = {1, 4},
                                .launched = {2, 5},
                                .done = {9, 6},
                                .gather_wait = {0.5},
                                .gather_late = {0}},
                               {.seconds = 2,
                                .backward_end = 2,
                                .exposed = 0.25,
                                .bytes = {4, 8},
                                .ready = {3, 2},
                                .launched = {4, 3},
                                .done = {7, 8},
                                .gather_wait = {0.25},
                                .gather_late = {0.125}}};
  for (const std::exception_ptr& error : dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
         const StepOverlap all = latest_of_ranks(group, ranks[group.rank()]);
         EXPECT_EQ(all.seconds, 3);
         EXPECT_EQ(all.backward_end, 2);
         EXPECT_EQ(all.exposed, 0.5);
         EXPECT_EQ(all.bytes, (std::vector<int64_t>{4, 8}));
         EXPECT_EQ(all.ready, (std::vector<double>{3, 4}));
         EXPECT_EQ(all.launched, (std::vector<double>{4, 5}));
         EXPECT_EQ(all.done, (std::vector<double>{9, 8}));
         EXPECT_EQ(all.gather_wait, (std::vector<double>{0.5}));
         EXPECT_EQ(all.gather_late, (std::vector<double>{0.125}));
       })) {
    EXPECT_FALSE(error);
  }
}

TEST(StepOverlap, RecentStepsAreThoseWithTheBucketsOfTheNewest) {
  RecentOverlap recent;
  recent.add({.seconds = 1, .bytes = {4}});
  recent.add({.seconds = 2, .bytes = {4, 8}});
  recent.add({.seconds = 3, .bytes = {4, 8}});
  ASSERT_EQ(recent.steps().size(), 2u);
  EXPECT_EQ(recent.steps().back().seconds, 3);
  for (size_t i = 0; i < RecentOverlap::kSteps; ++i) recent.add({.seconds = 4, .bytes = {4, 8}});
  ASSERT_EQ(recent.steps().size(), RecentOverlap::kSteps);
  EXPECT_EQ(recent.steps().front().seconds, 4);
}

}  // namespace
}  // namespace lockstep::train
