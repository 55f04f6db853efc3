#include "core/ops/forms/view.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Movedim, PutsDimensionsWhereTheyAreWanted) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(movedim(x, 0, 2).shape(), "[3, 4, 2]");
  EXPECT_EQ(movedim(x, -1, 0).shape(), "[4, 2, 3]");
  EXPECT_EQ(values(movedim(x, 0, 2)), values(x.permute({1, 2, 0})));
  EXPECT_EQ(values(movedim(x, {0, 2}, {1, 0})), values(x.permute({2, 0, 1})));
  EXPECT_EQ(values(movedim(x, {2, 1}, {0, 2})), values(x.permute({2, 0, 1})));
  expect_error<ShapeError>([&] { movedim(x, {0, 1}, {0}); }, "[movedim]");
}

TEST(Rot90, TurnsFromTheFirstDimensionTowardsTheSecond) {
  const Tensor x = counting({2, 3});  // 0 1 2 over 3 4 5
  EXPECT_EQ(rot90(x).shape(), "[3, 2]");
  EXPECT_EQ(values(rot90(x)), (Numbers{2, 5, 1, 4, 0, 3}));
  EXPECT_EQ(values(rot90(x, 2)), (Numbers{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(values(rot90(x, 3)), (Numbers{3, 0, 4, 1, 5, 2}));
  EXPECT_EQ(values(rot90(x, -1)), values(rot90(x, 3)));
  EXPECT_EQ(values(rot90(x, 5)), values(rot90(x)));
  EXPECT_EQ(values(rot90(x, 1, {1, 0})), values(rot90(x, 3)));
  const Tensor same = rot90(x, -4);
  EXPECT_EQ(values(same), values(x));
  EXPECT_NE(same.data(), x.data());
}

TEST(Flips, TurnColumnsOrRowsAround) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(values(fliplr(x)), (Numbers{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(flipud(x)), (Numbers{3, 4, 5, 0, 1, 2}));
  expect_error<ShapeError>([] { fliplr(counting({2})); }, "[fliplr]");
}

TEST(Meshgrid, HoldsEachVectorAlongADimension) {
  const std::vector<Tensor> vectors = {tensor_of({1, 2}), tensor_of({3, 4, 5})};
  for (const std::vector<Tensor>& grids : {meshgrid(vectors), meshgrid(vectors, "ij")}) {
    EXPECT_EQ(grids[0].shape(), "[2, 3]");
    EXPECT_EQ(values(grids[0]), (Numbers{1, 1, 1, 2, 2, 2}));
    EXPECT_EQ(values(grids[1]), (Numbers{3, 4, 5, 3, 4, 5}));
  }
  const std::vector<Tensor> exchanged = meshgrid(vectors, "xy");
  EXPECT_EQ(exchanged[0].shape(), "[3, 2]");
  EXPECT_EQ(values(exchanged[0]), (Numbers{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(values(exchanged[1]), (Numbers{3, 3, 4, 4, 5, 5}));
  expect_error<Error>([&] { meshgrid(vectors, "yx"); }, "[meshgrid]", "yx");
}

}  // namespace
}  // namespace lockstep
