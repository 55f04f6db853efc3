#include "core/ops/index/index_sets.h"

#include <limits>

#include "core/ops/index/index.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Combinations, AreInTheOrderOfPositions) {
  const Tensor x = tensor_of({7, 8, 9});
  EXPECT_EQ(values(combinations(x)), (Numbers{7, 8, 7, 9, 8, 9}));
  EXPECT_EQ(values(combinations(x, 2, true)), (Numbers{7, 7, 7, 8, 7, 9, 8, 8, 8, 9, 9, 9}));
  EXPECT_EQ(combinations(x, 4).shape(), "[0, 4]");
  EXPECT_EQ(combinations(x, 0).shape(), "[0]");
  EXPECT_EQ(combinations(counting({20}), 5).shape(), "[15504, 5]");
  expect_error<ShapeError>([] { combinations(counting({2, 2})); }, "[combinations]");
  expect_error<Error>([&] { combinations(x, -1); }, "[combinations]");
  expect_error<ShapeError>([] { combinations(counting({80}), 40); }, "[combinations]");
}

TEST(TriangleIndices, MayBeginAtAnyDiagonal) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(values(tril_indices(2, 3, kMost)), values(tril_indices(2, 3, 3)));
  EXPECT_EQ(values(triu_indices(2, 3, kLeast)), values(triu_indices(2, 3, -2)));
  EXPECT_EQ(tril_indices(2, 3, kLeast).shape(), "[2, 0]");
  EXPECT_EQ(triu_indices(2, 3, kMost).shape(), "[2, 0]");
}

TEST(TriangleIndices, AreThoseOfTheElementsOfTrilAndTriu) {
  for (const int64_t rows : {0, 1, 4, 7}) {
    for (const int64_t columns : {0, 1, 5}) {
      for (int64_t offset = -8; offset <= 8; ++offset) {
        const Tensor all = ones({rows, columns});
        EXPECT_EQ(values(tril_indices(rows, columns, offset)),
                  values(nonzero(tril(all, offset)).t()))
            << rows << " " << columns << " " << offset;
        EXPECT_EQ(values(triu_indices(rows, columns, offset)),
                  values(nonzero(triu(all, offset)).t()))
            << rows << " " << columns << " " << offset;
      }
    }
  }
  EXPECT_EQ(tril_indices(2, 2, 0, {DType::kI32, kCPU}).dtype(), DType::kI32);
  expect_error<ShapeError>([] { tril_indices(-1, 2); }, "[tril_indices]");
}

}  // namespace
}  // namespace lockstep
