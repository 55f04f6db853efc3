// Tensors of more than 2^31 elements, where a 32-bit index or count would wrap.

#include <gtest/gtest.h>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {
namespace {

constexpr int64_t kCount = (int64_t{1} << 31) + 12345;

TEST(Large, BytesBeyondTheReachOf32BitsAreComputedReadAndWritten) {
  const Tensor x = full({kCount}, 1, DType::kU8);
  x.slice(0, kCount - 1, kCount).fill_(7);
  EXPECT_EQ(x.sum().item<int64_t>(), kCount + 6);
  EXPECT_EQ(x.argmax().item<int64_t>(), kCount - 1);
  x.add_(x);
  EXPECT_EQ(x.select(0, kCount - 1).item<int>(), 14);
  EXPECT_EQ(x.select(0, kCount / 2).item<int>(), 2);
  const Tensor index = full({1}, kCount - 1, DType::kI64);
  EXPECT_EQ(index_select(x, 0, index).item<int>(), 14);
}

TEST(Large, WhatIsChosenAndJoinedReachesBeyond32Bits) {
  const Tensor x = zeros({kCount}, DType::kU8);
  x.slice(0, kCount - 1, kCount).fill_(7);
  const Tensor last = full({1}, kCount - 1, DType::kI64);
  EXPECT_TRUE(equal(nonzero(x), last.view({1, 1})));
  EXPECT_EQ(gather(x, 0, last).item<int>(), 7);
  EXPECT_EQ(cat({x, last.to(DType::kU8)}).select(0, kCount - 1).item<int>(), 7);
}

TEST(Large, PlacesBeyondTheReachOf32BitsAreFoundAcrossRows) {
  constexpr int64_t kSide = 46341;  // its square is just above 2^31
  const Tensor x = zeros({kSide, kSide}, DType::kU8);
  x.select(1, kSide - 1).fill_(3);
  const Tensor turned = x.t().contiguous();
  EXPECT_EQ(turned.select(0, kSide - 1).sum().item<int64_t>(), 3 * kSide);
  EXPECT_EQ(turned.select(0, kSide - 2).sum().item<int64_t>(), 0);
}

}  // namespace
}  // namespace lockstep
