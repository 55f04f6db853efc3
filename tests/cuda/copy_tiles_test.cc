#include "kernels/cuda/factory/copy_tiles.h"

#include <gtest/gtest.h>

#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "kernels/common/strided_plan.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

using cuda::CopyTiles;

/// The tiles for a copy of `from` to contiguous memory.
std::optional<CopyTiles> tiles_of(const Tensor& from) {
  const Tensor to = empty_tensor(from.sizes(), from.dtype(), kCPU);
  const In in(*from.impl());
  const Out out(*to.impl());
  const In* const inputs[] = {&in};
  StridedPlan plan;
  make_plan(plan, out, inputs);
  return cuda::plan_tiles(plan, static_cast<int64_t>(size_of(from.dtype())));
}

Tensor some(IntList sizes, DType dtype = DType::kF32) {
  return repeated_indices(sizes, 251).to(dtype);
}

TEST(CudaCopyTiles, CoverEveryMatrixOfATransposedCopy) {
  const std::optional<CopyTiles> one = tiles_of(some({40, 71}).t());
  ASSERT_TRUE(one);
  EXPECT_EQ(one->rows, 71);
  EXPECT_EQ(one->columns, 40);
  EXPECT_EQ(one->to_row, 40 * 4);
  EXPECT_EQ(one->from_column, 71 * 4);
  EXPECT_EQ(one->tiles, 2 * 3);
  EXPECT_EQ(one->width, 1);
  const std::optional<CopyTiles> several = tiles_of(some({3, 40, 5, 71}).permute({2, 0, 3, 1}));
  ASSERT_TRUE(several);
  EXPECT_EQ(several->tiles, 3 * 5 * 2 * 3);
}

TEST(CudaCopyTiles, AreOnlyForMatricesThatFillThem) {
  EXPECT_FALSE(tiles_of(some({40, 70}))) << "neighbours in both";
  EXPECT_FALSE(tiles_of(some({15, 70}).t()));
  EXPECT_FALSE(tiles_of(some({70, 15}).t()));
  EXPECT_FALSE(tiles_of(some({40, 70}).slice(1, 0, 70, 2).t())) << "neighbours nowhere";
  EXPECT_TRUE(tiles_of(some({16, 16}).t()));
}

TEST(CudaCopyTiles, SmallElementsMoveTogetherWhereTheyCan) {
  EXPECT_EQ(tiles_of(some({64, 32}, DType::kU8).t())->width, 4);
  EXPECT_EQ(tiles_of(some({64, 32}, DType::kBF16).t())->width, 2);
  EXPECT_EQ(tiles_of(some({64, 32}, DType::kBF16).t())->tiles, 1);
  EXPECT_EQ(tiles_of(some({64, 32}).t())->width, 2);
  EXPECT_EQ(tiles_of(some({64, 32}, DType::kF64).t())->width, 1);
  EXPECT_EQ(tiles_of(some({63, 32}, DType::kBF16).t())->width, 1);
  EXPECT_EQ(tiles_of(some({64, 31}, DType::kBF16).t())->width, 1);
  EXPECT_EQ(tiles_of(some({64, 40}, DType::kBF16).slice(1, 1, 33).t())->width, 1) << "odd start";
}

TEST(CudaCopyTiles, GiveTheCpusBits) {
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64, DType::kBool}) {
    for (const auto& [rows, columns] : {std::pair{16, 16}, {33, 65}, {64, 132}, {130, 20}}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << rows << " x " << columns);
      expect_same_bits({some({2, rows, 3, columns}, dtype)}, [](const std::vector<Tensor>& t) {
        const Tensor whole = t[0].clone(), part = t[0].slice(3, 1);
        whole.transpose(1, 3).copy_(t[0].transpose(1, 3).contiguous());
        return std::vector<Tensor>{t[0].transpose(1, 3).contiguous(),
                                   t[0].permute({2, 0, 3, 1}).contiguous(),
                                   part.transpose(1, 3).contiguous(), whole};
      });
    }
  }
}

TEST(CudaCopyTiles, NeighboursThatStayTogetherMoveAsOne) {
  for (const int64_t together : {2, 4, 8}) {
    for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32}) {
      expect_same_bits({some({40, 33, together}, dtype)}, [](const std::vector<Tensor>& t) {
        return std::vector<Tensor>{t[0].transpose(0, 1).contiguous()};
      });
    }
  }
}

}  // namespace
}  // namespace lockstep
