#include "core/tensor/shape.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "tests/core/expect_error.h"
#include "tests/core/tensor/places.h"

namespace lockstep {
namespace {

/// A random layout of up to four small dimensions: dense in some order, with occasional gaps,
/// overlaps or broadcast dimensions.
std::pair<Dims, Dims> random_layout() {
  const auto sizes = *rc::gen::container<std::vector<int64_t>>(
      *rc::gen::inRange(0, 5),
      rc::gen::weightedElement<int64_t>({{1, 0}, {6, 1}, {9, 2}, {6, 3}, {3, 4}}));
  std::vector<int64_t> strides(sizes.size());
  std::vector<size_t> places(sizes.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  if (*rc::gen::arbitrary<bool>()) std::reverse(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i) {
    if (*rc::gen::inRange(0, 4) == 0) std::swap(places[i], places[*rc::gen::inRange<size_t>(0, i)]);
  }
  int64_t next = 1;
  for (size_t place : places) {
    strides[place] = next;
    if (*rc::gen::inRange(0, 8) == 0) strides[place] = *rc::gen::inRange<int64_t>(0, 7);
    next = std::max<int64_t>(next, 1) * std::max<int64_t>(sizes[place], 1);
    if (*rc::gen::inRange(0, 6) == 0) next += *rc::gen::inRange<int64_t>(0, 3);
  }
  return {to_dims(sizes), to_dims(strides)};
}

/// Appends all shapes with `numel` elements and up to `rank` dimensions.
void factorings(int64_t numel, size_t rank, Dims so_far, std::vector<Dims>& out) {
  if (numel == 1) out.push_back(so_far);
  if (so_far.size() == rank) return;
  for (int64_t size = 1; size <= numel; ++size) {
    if (numel % size != 0) continue;
    Dims longer = so_far;
    longer.push_back(size);
    factorings(numel / size, rank, longer, out);
  }
}

/// Whether some strides for `to` give the offsets `wanted` in order. The second element along a
/// dimension fixes its stride.
bool expressible(const Dims& to, const std::vector<int64_t>& wanted) {
  const Dims rows = contiguous_strides(to);
  Dims strides(to.size(), 0);
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] > 1) strides[i] = wanted[rows[i]] - wanted[0];
  }
  return places(to, strides) == wanted;
}

RC_GTEST_PROP(Shape, ViewStridesKeepEveryElementInPlaceAndRefuseOnlyTheImpossible, ()) {
  const auto [sizes, strides] = random_layout();
  const int64_t numel = count_elements(sizes);
  RC_PRE(numel > 0);
  const std::vector<int64_t> wanted = places(sizes, strides);
  std::vector<Dims> shapes;
  factorings(numel, 3, {}, shapes);
  for (const Dims& to : shapes) {
    Dims out;
    const bool possible = view_strides(sizes, strides, to, out);
    if (possible) RC_ASSERT(places(to, out) == wanted);
    RC_ASSERT(possible == expressible(to, wanted));
  }
}

RC_GTEST_PROP(Shape, DensityAndOverlapAgreeWithCountingPlaces, ()) {
  const auto [sizes, strides] = random_layout();
  const std::vector<int64_t> all = places(sizes, strides);
  const std::set<int64_t> distinct_places(all.begin(), all.end());
  const bool distinct = distinct_places.size() == all.size();
  const bool gapless =
      all.empty() || *distinct_places.rbegin() + 1 == static_cast<int64_t>(distinct_places.size());
  RC_ASSERT(is_dense(sizes, strides) == (distinct && gapless));
  if (!distinct) RC_ASSERT(may_self_overlap(sizes, strides));
  if (distinct && gapless) RC_ASSERT(!may_self_overlap(sizes, strides));
  RC_ASSERT(is_contiguous(sizes, strides) == (all == places(sizes, contiguous_strides(sizes))));
}

RC_GTEST_PROP(Shape, BroadcastReadsEachOperandAsItsElementRepeated, ()) {
  // Each operand is the common shape with some sizes set to 1 and leading dimensions dropped.
  const auto common = *rc::gen::container<std::vector<int64_t>>(*rc::gen::inRange(0, 4),
                                                                rc::gen::inRange<int64_t>(0, 4));
  const auto operand = [&] {
    Dims sizes = to_dims(common);
    for (int64_t& size : sizes) size = *rc::gen::inRange(0, 3) == 0 ? 1 : size;
    const size_t drop = *rc::gen::inRange<size_t>(0, sizes.size() + 1);
    for (size_t i = 0; i < drop; ++i) sizes.erase(0);
    return sizes;
  };
  const Dims a = operand();
  const Dims b = operand();
  const Dims both = broadcast("add", a, b);
  RC_ASSERT(both == broadcast("add", b, a));
  RC_ASSERT(both.size() == std::max(a.size(), b.size()));
  const Dims strides = broadcast_strides(a, contiguous_strides(a), both);
  for (size_t i = 0; i < both.size(); ++i) {
    const bool has = i + a.size() >= both.size();
    const int64_t size = has ? a[i + a.size() - both.size()] : 1;
    RC_ASSERT(size == both[i] || (size == 1 && strides[i] == 0));
  }
}

TEST(Shape, BroadcastNamesOperatorShapesAndDimension) {
  expect_error<ShapeError>(
      [] {
        broadcast("add", {2, 3}, {2, 4});
      },
      "[add] shapes [2, 3] and [2, 4] do not broadcast: dimension -1");
  EXPECT_EQ(broadcast("add", {0}, {1}), Dims{0});
  EXPECT_THROW(broadcast("add", {0}, {2}), ShapeError);
}

TEST(Shape, InferSizeFillsTheHole) {
  EXPECT_EQ(infer_size("view", {-1, 3}, 6), (Dims{2, 3}));
  EXPECT_EQ(infer_size("view", {-1}, 0), Dims{0});
  EXPECT_EQ(infer_size("view", {}, 1), Dims{});
  EXPECT_EQ(infer_size("view", {0, 5}, 0), (Dims{0, 5}));
}

TEST(Shape, InferSizeRefusesWhatDoesNotFit) {
  expect_error<ShapeError>([] { infer_size("view", {-1, -1}, 6); }, "only one size may be -1");
  expect_error<ShapeError>([] { infer_size("view", {4}, 6); }, "does not hold the 6 elements");
  EXPECT_THROW(infer_size("view", {-1, 4}, 6), ShapeError);
  EXPECT_THROW(infer_size("view", {-2, 3}, 6), ShapeError);
  EXPECT_THROW(infer_size("view", {-1, 0}, 0), ShapeError) << "any size would do";
  const int64_t half = int64_t{1} << 32;
  EXPECT_THROW(infer_size("view", {half, half}, 0), ShapeError) << "the product leaves int64";
}

TEST(Shape, CountElementsRefusesNegativeSizesAndOverflow) {
  EXPECT_EQ(count_elements({}), 1);
  EXPECT_EQ(count_elements({2, 0, 3}), 0);
  EXPECT_THROW(count_elements({2, -1}), ShapeError);
  EXPECT_THROW(count_elements({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
}

TEST(Shape, TensorsWithoutElementsAreContiguousUnderAnyStrides) {
  EXPECT_TRUE(is_contiguous({0, 3, 5}, {1, 1, 3}));
  EXPECT_TRUE(is_contiguous({3, 5, 0}, {7, 7, 7}));
}

TEST(Shape, WrapDimCountsFromTheEndAndNamesTheRange) {
  EXPECT_EQ(wrap_dim("sum", -1, 3), 2);
  EXPECT_EQ(wrap_dim("sum", 0, 0), 0);
  EXPECT_EQ(wrap_dim("sum", -1, 0), 0);
  expect_error<IndexError>([] { wrap_dim("sum", 3, 3); },
                           "[sum] dimension out of range: expected one in [-3, 2], got 3.");
  EXPECT_THROW(wrap_dim("sum", 1, 0), IndexError);
}

TEST(Shape, DimMaskOfNoDimensionsMeansAll) {
  EXPECT_EQ(dim_mask("sum", {}, 3), 0b111u);
  EXPECT_EQ(dim_mask("sum", {0, -1}, 3), 0b101u);
  EXPECT_EQ(dim_mask("sum", {}, 0), 1u);
  EXPECT_EQ(dim_mask("sum", {}, 64), ~uint64_t{0});
  expect_error<ShapeError>([] { dim_mask("sum", {0, -3}, 3); }, "appears twice");
}

TEST(Shape, PrintsAsAList) {
  EXPECT_EQ(to_string(IntList{2, 3}), "[2, 3]");
  EXPECT_EQ(to_string(IntList{}), "[]");
}

}  // namespace
}  // namespace lockstep
