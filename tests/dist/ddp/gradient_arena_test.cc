#include "dist/ddp/gradient_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep::dist {
namespace {

TEST(GradientArena, HasRowsWhoseSlotsAndRangesAreItsMemory) {
  const GradientArena arena(3, 10, DType::kF32, kCPU);
  EXPECT_EQ(arena.elements(), 10);
  EXPECT_EQ(arena.bytes(), 120);
  const Tensor all = arena.ranges(3, 0, 10);
  const auto* const values = arena.range(0, 0, 10).data<float>();
  EXPECT_TRUE(std::all_of(values, values + 30, [](float each) { return each == 0; }));
  const Tensor slot = arena.slot(1, 4, empty({2, 3}, DType::kF32));
  EXPECT_EQ(slot.sizes()[0], 2);
  EXPECT_EQ(slot.sizes()[1], 3);
  EXPECT_TRUE(slot.is_contiguous());
  EXPECT_EQ(slot.data<float>(), values + 14);
  slot.fill_(7);
  EXPECT_EQ(std::count(values, values + 30, 7.0F), 6);
  const Tensor range = arena.range(2, 3, 8);
  EXPECT_EQ(range.data<float>(), values + 23);
  EXPECT_EQ(range.numel(), 5);
  const Tensor ranges = arena.ranges(2, 3, 8);
  EXPECT_EQ(ranges.data<float>(), values + 3);
  EXPECT_EQ(ranges.size(0), 2);
  EXPECT_EQ(ranges.size(1), 5);
  EXPECT_EQ(ranges.stride(0), 10);
}

TEST(WindowLike, IsDenseWhateverTheStridesOfItsModel) {
  const Tensor flat = empty({20}, DType::kF64);
  const Tensor window = window_like(flat, 5, empty({2, 3}, DType::kF64).t());
  EXPECT_EQ(window.data<double>(), flat.data<double>() + 5);
  EXPECT_EQ(window.size(0), 3);
  EXPECT_TRUE(window.is_contiguous());
  EXPECT_EQ(window.storage()->bytes(), 48u) << "its storage is the window alone";
}

}  // namespace
}  // namespace lockstep::dist
