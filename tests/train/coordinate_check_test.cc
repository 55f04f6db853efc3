#include "train/coordinate_check.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

/// The check of models of widths 8 and 16 after two steps, with seeds from `first_seed` on.
CoordinateCheck tiny_check(const TemporaryDirectory& folder, int64_t seeds = 1,
                           int64_t first_seed = 1) {
  return check_coordinates(
      {.widths = {8, 16}, .steps = 2, .seeds = seeds}, [&](int64_t width, int64_t seed) {
        return tiny_run(folder, fmt::format("seed: {} model {{ gpt2 {{ width: {} }} }}",
                                            first_seed + seed, width));
      });
}

TEST(CoordinateCheck, EveryKindOfLayerHasASizeAndMovesFromTheFirstStepOn) {
  const TemporaryDirectory folder;
  const CoordinateCheck check = tiny_check(folder);
  ASSERT_EQ(check.layers.size(), 5u);
  for (const LayerCoordinates& each : check.layers) {
    ASSERT_EQ(each.sizes.size(), 3u) << each.layer;
    for (size_t step = 0; step < 3; ++step) {
      for (size_t width = 0; width < 2; ++width) {
        EXPECT_GT(each.sizes[step][width], 0) << each.layer << " after step " << step;
        EXPECT_EQ(each.moves[step][width] > 0, step > 0) << each.layer << " after step " << step;
      }
    }
  }
}

TEST(CoordinateCheck, BranchesAreMeasuredWithoutTheSumTheyAreAddedTo) {
  const TemporaryDirectory folder;
  std::map<std::string, double> sizes;  // before the first step
  for (const LayerCoordinates& each : tiny_check(folder).layers) {
    sizes[each.layer] = each.sizes[0][0];
  }
  // GPT-2 begins with branches that change little about what they are added to.
  EXPECT_LT(sizes["attention output"], sizes["blocks"] / 2);
  EXPECT_LT(sizes["MLP output"], sizes["blocks"] / 2);
  EXPECT_NEAR(sizes["blocks"], sizes["embedding"], sizes["embedding"] / 2);
}

TEST(CoordinateCheck, SizesAndMovesAreMeansOverTheSeeds) {
  const TemporaryDirectory folder;
  const CoordinateCheck both = tiny_check(folder, 2), one = tiny_check(folder),
                        other = tiny_check(folder, 1, 2);
  for (size_t i = 0; i < both.layers.size(); ++i) {
    const LayerCoordinates &got = both.layers[i], &a = one.layers[i], &b = other.layers[i];
    EXPECT_NE(a.sizes[2][1], b.sizes[2][1]) << got.layer;
    EXPECT_DOUBLE_EQ(got.sizes[2][1], (a.sizes[2][1] + b.sizes[2][1]) / 2) << got.layer;
    EXPECT_DOUBLE_EQ(got.moves[2][1], (a.moves[2][1] + b.moves[2][1]) / 2) << got.layer;
  }
}

}  // namespace
}  // namespace lockstep::train
