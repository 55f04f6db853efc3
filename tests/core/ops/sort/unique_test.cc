#include "core/ops/forms/sort.h"
#include "core/ops/sort/membership.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(UniqueConsecutive, JoinsEqualNeighboursOnly) {
  const Tensor x = tensor_of({1, 1, 2, 2, 2, 1});
  const auto [elements, inverse, counts] = unique_consecutive(x, true, true);
  EXPECT_EQ(values(elements), (Numbers{1, 2, 1}));
  EXPECT_EQ(values(inverse), (Numbers{0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(values(counts), (Numbers{2, 3, 1}));
  EXPECT_EQ(std::get<1>(unique_consecutive(x)).numel(), 0);
  EXPECT_EQ(std::get<0>(unique_consecutive(zeros({0}))).numel(), 0);
}

TEST(UniqueConsecutive, JoinsEqualSlicesAlongADimension) {
  const Tensor x = tensor_of({1, 1, 2, 3, 3, 4}).reshape({2, 3});
  const auto [columns, inverse, counts] = unique_consecutive(x, true, true, 1);
  EXPECT_EQ(columns.shape(), "[2, 2]");
  EXPECT_EQ(values(columns), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(values(inverse), (Numbers{0, 0, 1}));
  EXPECT_EQ(values(counts), (Numbers{2, 1}));
}

TEST(UniqueDim, SortsItsSlicesByTheirFirstElementsFirst) {
  const Tensor x = tensor_of({2, 1, 1, 9, 2, 0, 1, 9, 2, 1}).reshape({5, 2});
  const auto [rows, inverse, counts] = unique_dim(x, 0, true, true, true);
  EXPECT_EQ(values(rows), (Numbers{1, 9, 2, 0, 2, 1}));
  EXPECT_EQ(values(inverse), (Numbers{2, 0, 1, 0, 2}));
  EXPECT_EQ(values(counts), (Numbers{2, 1, 2}));
  EXPECT_EQ(values(std::get<0>(unique_dim(x.t(), 1))), values(rows.t()));
}

TEST(Msort, SortsAlongTheFirstDimension) {
  const Tensor x = tensor_of({3, 1, 2, 5, 1, 4}).reshape({3, 2});
  EXPECT_EQ(values(msort(x)), (Numbers{1, 1, 2, 4, 3, 5}));
}

}  // namespace
}  // namespace lockstep
