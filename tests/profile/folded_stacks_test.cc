#include "profile/folded_stacks.h"

#include <gtest/gtest.h>

#include "tests/profile/made_up_profile.h"

namespace lockstep::profile {
namespace {

TEST(FoldedStacks, ALineForEachStackWithItsOwnTime) {
  Profile profile = made_up_profile();
  profile.spans[2].parent = 1;  // the range is inside the addition
  profile.spans[1].self_ns = 1'250;
  EXPECT_EQ(folded_stacks(profile),
            "main;add.Tensor 1250\n"
            "main;add.Tensor;augment 1000\n"
            "worker;AddBackward0 500\n");
}

TEST(FoldedStacks, EqualStacksAddUpAndSeparatorsAreReplaced) {
  Profile profile = made_up_profile();
  profile.spans[1].name = profile.spans[2].name = "a;b";
  EXPECT_EQ(folded_stacks(profile), "main;a:b 3250\nworker;AddBackward0 500\n");
}

}  // namespace
}  // namespace lockstep::profile
