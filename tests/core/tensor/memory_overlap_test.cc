#include "core/tensor/memory_overlap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace lockstep {
namespace {

/// A strided tensor with no memory behind its address.
struct Strided {
  uintptr_t address = 1 << 20;
  std::vector<int64_t> sizes = {};
  std::vector<int64_t> strides = {};
  DType dtype = DType::kU8;

  TensorArg arg() const {
    TensorArg tensor;
    tensor.address = reinterpret_cast<void*>(address);
    tensor.size_data = sizes.data();
    tensor.stride_data = strides.data();
    tensor.rank = static_cast<int32_t>(sizes.size());
    tensor.numel = 1;
    for (const int64_t size : sizes) tensor.numel *= size;
    tensor.dtype = dtype;
    return tensor;
  }
  Footprint footprint() const { return Footprint(arg()); }

  std::set<uintptr_t> bytes() const {
    std::set<uintptr_t> set;
    std::vector<int64_t> index(sizes.size());
    if (arg().numel == 0) return set;
    while (true) {
      int64_t place = 0;
      for (size_t i = 0; i < sizes.size(); ++i) place += index[i] * strides[i];
      const int64_t item = static_cast<int64_t>(size_of(dtype));
      for (int64_t i = 0; i < item; ++i) {
        set.insert(address + static_cast<uintptr_t>(place * item + i));
      }
      size_t i = 0;
      while (i < sizes.size() && ++index[i] == sizes[i]) index[i++] = 0;
      if (i == sizes.size()) return set;
    }
  }
};

Strided any_strided() {
  Strided strided;
  strided.address += *rc::gen::inRange<uintptr_t>(0, 40);
  strided.dtype = *rc::gen::element(DType::kU8, DType::kF16, DType::kF32);
  const int rank = *rc::gen::inRange(0, 4);
  for (int i = 0; i < rank; ++i) {
    strided.sizes.push_back(*rc::gen::inRange<int64_t>(0, 5));
    strided.strides.push_back(*rc::gen::inRange<int64_t>(-3, 12));
  }
  return strided;
}

RC_GTEST_PROP(Footprint, BeginEndAndGapsAreThoseOfTheBytes, ()) {
  const Strided strided = any_strided();
  const std::set<uintptr_t> bytes = strided.bytes();
  const Footprint footprint = strided.footprint();
  RC_ASSERT(footprint.empty() == bytes.empty());
  if (bytes.empty()) return;
  RC_ASSERT(footprint.begin() == *bytes.begin());
  RC_ASSERT(footprint.end() == *bytes.rbegin() + 1);
  // has_gaps may report a gap that only three strides together fill, but misses none.
  const bool gaps = footprint.end() - footprint.begin() != bytes.size();
  RC_ASSERT(footprint.has_gaps() || !gaps);
}

RC_GTEST_PROP(Footprint, TwoOverlapWhenTheyShareAByte, ()) {
  const Strided a = any_strided();
  const Strided b = any_strided();
  const std::set<uintptr_t> a_bytes = a.bytes();
  const std::set<uintptr_t> b_bytes = b.bytes();
  const bool share = std::ranges::any_of(a_bytes, [&](uintptr_t x) { return b_bytes.contains(x); });
  RC_ASSERT(overlap(a.footprint(), b.footprint()) == (share ? Overlap::kYes : Overlap::kNo));
  RC_ASSERT(overlap(b.footprint(), a.footprint()) == (share ? Overlap::kYes : Overlap::kNo));
}

TEST(Footprint, ContiguousTensorsHaveNoGapsWhateverTheirOrder) {
  EXPECT_FALSE((Strided{.sizes = {3, 4, 5}, .strides = {20, 5, 1}}).footprint().has_gaps());
  EXPECT_FALSE((Strided{.sizes = {5, 4, 3}, .strides = {1, 5, 20}}).footprint().has_gaps());
  EXPECT_FALSE((Strided{.sizes = {3, 7}, .strides = {1, 0}}).footprint().has_gaps());
  EXPECT_TRUE((Strided{.sizes = {3, 4}, .strides = {8, 1}}).footprint().has_gaps());
}

TEST(Footprint, ManyEqualRowsAreOneStep) {
  // One head of [batch, heads, time, depth], as a view of [batch, time, heads * depth].
  const Strided head{
      .sizes = {64, 1, 1024, 64}, .strides = {786432, 64, 768, 1}, .dtype = DType::kF32};
  Strided next = head;
  next.address += 64 * 4;
  EXPECT_EQ(overlap(head.footprint(), next.footprint()), Overlap::kNo);
  next.address -= 4;
  EXPECT_EQ(overlap(head.footprint(), next.footprint()), Overlap::kYes);
}

TEST(Footprint, TheSameElementsHaveEqualFootprints) {
  const Strided rows{.sizes = {6, 2}, .strides = {4, 1}};
  const Strided split{.sizes = {2, 3, 1, 2}, .strides = {12, 4, 99, 1}};
  EXPECT_EQ(rows.footprint(), split.footprint());
}

TEST(Footprint, ItGivesUpRatherThanSearchForEver) {
  // An instance that is hard for exact solvers: subset sums of large, nearly equal numbers.
  Strided hard{.address = 1 << 20};
  for (int64_t i = 0; i < 20; ++i) {
    hard.sizes.push_back(2);
    hard.strides.push_back((int64_t{1} << 30) + (int64_t{1} << i) * 2 + i * i * 977 * 2);
  }
  Strided other{.address = (1 << 20) + (uintptr_t{10} << 30) + 1, .sizes = {1}, .strides = {1}};
  EXPECT_NE(overlap(hard.footprint(), other.footprint()), Overlap::kYes);
}

}  // namespace
}  // namespace lockstep
