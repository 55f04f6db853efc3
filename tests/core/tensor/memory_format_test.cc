#include "core/tensor/memory_format.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace lockstep {
namespace {

RC_GTEST_PROP(DenseStrides, CloseTheGapsAndKeepTheOrderOfASingleExample, ()) {
  const auto rank = *rc::gen::inRange<size_t>(0, 5);
  std::vector<size_t> inner_first(rank);
  for (size_t i = 0; i < rank; ++i) inner_first[i] = i;
  for (size_t i = rank; i > 1; --i) {
    std::swap(inner_first[i - 1], inner_first[*rc::gen::inRange<size_t>(0, i)]);
  }
  Dims sizes(rank, 0), dense(rank, 0), gapped(rank, 0);
  for (int64_t& size : sizes) size = *rc::gen::inRange<int64_t>(2, 5);
  int64_t step = 1, wide = 1;
  for (const size_t d : inner_first) {
    wide += *rc::gen::inRange<int64_t>(0, 3);
    dense[d] = step;
    gapped[d] = wide;
    step *= sizes[d];
    wide *= sizes[d];
  }
  RC_ASSERT(dense_strides(sizes, {{gapped}}) == dense);
}

TEST(DenseStrides, TheFirstExampleThatTellsDimensionsApartDecides) {
  const Dims sizes{2, 3, 4}, rows{12, 4, 1}, turned{1, 2, 6}, one{0, 1, 0}, middle{0, 1, 3};
  EXPECT_EQ(dense_strides(sizes, {}), rows);
  EXPECT_EQ(dense_strides(sizes, std::vector<IntList>{rows, turned}), rows);
  EXPECT_EQ(dense_strides(sizes, std::vector<IntList>{turned, rows}), turned);
  EXPECT_EQ(dense_strides(sizes, std::vector<IntList>{one, turned}), turned);
  EXPECT_EQ(dense_strides(sizes, std::vector<IntList>{middle, rows}), (Dims{12, 1, 3}));
  EXPECT_EQ(dense_strides(Dims{0, 3}, std::vector<IntList>{Dims{1, 2}}).size(), 2U);
}

TEST(IsInFormat, IgnoresTheStrideOfADimensionOfSizeOne) {
  const auto last = [](const Dims& sizes, const Dims& strides) {
    return is_in_format(MemoryFormat::kChannelsLast, sizes, strides);
  };
  EXPECT_TRUE(last({2, 3, 4, 5}, {60, 1, 15, 3}));
  EXPECT_FALSE(last({2, 3, 4, 5}, {60, 20, 5, 1}));
  EXPECT_FALSE(last({2, 3, 4, 5}, {120, 1, 15, 3})) << "a gap between the samples";
  EXPECT_TRUE(last({1, 3, 4, 5}, {7, 1, 15, 3}));
  EXPECT_TRUE(last({2, 1, 4, 5}, {20, 99, 5, 1}));
  EXPECT_TRUE(is_in_format(MemoryFormat::kContiguous, Dims{2, 1, 4, 5}, Dims{20, 99, 5, 1}))
      << "one channel is in both formats";
  EXPECT_TRUE(last({2, 3, 1, 1}, {3, 1, 1, 1}));
}

TEST(IsInFormat, OfAnotherRankIsFalse) {
  EXPECT_FALSE(is_in_format(MemoryFormat::kChannelsLast, Dims{3, 4, 5}, Dims{1, 15, 3}));
  EXPECT_FALSE(is_in_format(MemoryFormat::kChannelsLast3d, Dims{1, 1, 1, 1}, Dims{1, 1, 1, 1}));
  EXPECT_TRUE(
      is_in_format(MemoryFormat::kChannelsLast3d, Dims{1, 2, 3, 4, 5}, Dims{120, 1, 40, 10, 2}));
}

TEST(IsInFormat, PreserveMeansRowMajor) {
  EXPECT_TRUE(is_in_format(MemoryFormat::kPreserve, Dims{2, 3}, Dims{3, 1}));
  EXPECT_FALSE(is_in_format(MemoryFormat::kPreserve, Dims{2, 3}, Dims{1, 2}));
}

RC_GTEST_PROP(IsInFormat, HoldsForTheStridesOfTheFormat, ()) {
  const auto format = *rc::gen::element(MemoryFormat::kContiguous, MemoryFormat::kChannelsLast,
                                        MemoryFormat::kChannelsLast3d);
  Dims sizes(format == MemoryFormat::kChannelsLast3d ? 5 : 4, 0);
  for (int64_t& size : sizes) size = *rc::gen::inRange<int64_t>(1, 4);
  RC_ASSERT(is_in_format(format, sizes, strides_in_format("test", format, sizes, sizes)));
}

}  // namespace
}  // namespace lockstep
