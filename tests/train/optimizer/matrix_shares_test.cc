#include "train/optimizer/matrix_shares.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::train {
namespace {

/// The matrices of some blocks of a transformer, and a large one.
std::vector<MatrixSize> blocks(int count) {
  std::vector<MatrixSize> sizes;
  for (int i = 0; i < count; ++i) {
    sizes.insert(sizes.end(), {{48, 16}, {16, 16}, {64, 16}, {16, 64}});
  }
  sizes.push_back({100, 80});
  return sizes;
}

TEST(MatrixShares, ResultsOfARankLieBehindEachOtherAndFitItsRoom) {
  const std::vector<MatrixSize> sizes = blocks(5);
  for (const int ranks : {1, 2, 3, 8, 50}) {
    const MatrixShares shares(sizes, ranks);
    std::map<int, std::map<int64_t, int64_t>> ends;  // by rank and beginning
    for (size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_GE(shares.owner(i), 0);
      ASSERT_LT(shares.owner(i), ranks);
      ends[shares.owner(i)][shares.offset(i)] = shares.offset(i) + sizes[i].elements();
    }
    int64_t most = 0;
    for (const auto& [rank, of_rank] : ends) {
      int64_t at = 0;
      for (const auto& [begin, end] : of_rank) {
        EXPECT_EQ(begin, at) << rank;
        at = end;
      }
      most = std::max(most, at);
    }
    EXPECT_EQ(shares.room(), most);
  }
}

TEST(MatrixShares, RanksGetEquallyMuchToDo) {
  const std::vector<MatrixSize> sizes(12, {32, 16});
  const MatrixShares shares(sizes, 4);
  EXPECT_EQ(shares.room(), 3 * 32 * 16);
  // The large one takes as long as many small ones.
  const MatrixShares unequal(blocks(5), 2);
  const size_t large = blocks(5).size() - 1;
  for (size_t i = 0; i < large; ++i) EXPECT_NE(unequal.owner(i), unequal.owner(large)) << i;
}

TEST(MatrixShares, TheLastRankGetsTheDearest) {
  for (const int ranks : {1, 2, 3, 50}) {
    EXPECT_EQ(MatrixShares(blocks(5), ranks).owner(blocks(5).size() - 1), ranks - 1);
  }
}

TEST(MatrixShares, WithoutMatricesThereIsNothing) { EXPECT_EQ(MatrixShares({}, 3).room(), 0); }

}  // namespace
}  // namespace lockstep::train
