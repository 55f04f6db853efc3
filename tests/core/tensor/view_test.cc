#include "core/ops/view/view.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <numeric>

#include "core/dispatch/value.h"
#include "tests/core/expect_error.h"
#include "tests/core/tensor/places.h"

namespace lockstep {
namespace {

/// 0, 1, 2, ... in row-major order.
Tensor counting(IntList sizes) {
  const Tensor t = empty_tensor(sizes, DType::kI64);
  std::iota(t.data<int64_t>(), t.data<int64_t>() + t.numel(), int64_t{0});
  return t;
}

using Index = std::vector<int64_t>;

/// Calls `visit` with every index of `sizes`, the last dimension fastest.
void for_each_index(const Dims& sizes, const std::function<void(const Index&)>& visit) {
  Index at(sizes.size(), 0);
  const int64_t count = count_elements(sizes);
  for (int64_t n = 0; n < count; ++n) {
    visit(at);
    for (size_t i = sizes.size(); i-- > 0;) {
      if (++at[i] < sizes[i]) break;
      at[i] = 0;
    }
  }
}

int64_t element(const Tensor& t, const Index& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < at.size(); ++i) offset += at[i] * t.strides()[i];
  return t.data<int64_t>()[offset];
}

std::vector<int64_t> elements(const Tensor& t) {
  std::vector<int64_t> all = places(t.sizes(), t.strides());
  for (int64_t& each : all) each = t.data<int64_t>()[each];
  return all;
}

/// Whether `view` shares memory with `base` and holds base[source(index)] at every index.
bool reads(const Tensor& view, const Tensor& base, const std::function<Index(Index)>& source) {
  bool good = view.storage() == base.storage() && view.is_view();
  for_each_index(to_dims(view.sizes()), [&](const Index& at) {
    good = good && element(view, at) == element(base, source(at));
  });
  return good;
}

/// A tensor of one to four dimensions that is itself a view more often than not.
Tensor random_tensor() {
  const auto sizes =
      *rc::gen::container<Index>(*rc::gen::inRange(1, 5), rc::gen::inRange<int64_t>(1, 5));
  Tensor t = counting(sizes);
  if (*rc::gen::arbitrary<bool>()) t = t.transpose(0, -1);
  if (*rc::gen::arbitrary<bool>()) t = t.slice(0, *rc::gen::inRange<int64_t>(0, t.size(0)));
  return t;
}
int64_t random_dim(const Tensor& t) { return *rc::gen::inRange<int64_t>(-t.dim(), t.dim()); }

RC_GTEST_PROP(View, SliceReadsEveryStepThElementAsPythonDoes, ()) {
  const Tensor base = random_tensor();
  const int64_t dim = random_dim(base);
  const int64_t d = dim < 0 ? dim + base.dim() : dim;
  const auto bound = rc::gen::maybe(rc::gen::inRange<int64_t>(-7, 8));
  const auto start = *bound;
  const auto end = *bound;
  const int64_t step = *rc::gen::inRange<int64_t>(1, 5);
  const auto option = [](const rc::Maybe<int64_t>& m) {
    return m ? std::optional<int64_t>(*m) : std::nullopt;
  };
  const Tensor view = base.slice(dim, option(start), option(end), step);
  // Python's slice rules: negative bounds count from the end, bounds are clamped, then start, start
  // + step, ... < end.
  const int64_t size = base.size(d);
  const auto place = [size](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const int64_t first = start ? place(*start) : 0;
  const int64_t last = end ? place(*end) : size;
  int64_t length = 0;
  for (int64_t i = first; i < last; i += step) ++length;
  RC_ASSERT(view.size(d) == length);
  RC_ASSERT(reads(view, base, [&](Index at) {
    at[d] = first + at[d] * step;
    return at;
  }));
}

RC_GTEST_PROP(View, TransposePermuteSelectUnsqueezeAndSqueezeRenameIndices, ()) {
  const Tensor base = random_tensor();
  const int64_t rank = base.dim();
  const int64_t a = *rc::gen::inRange<int64_t>(0, rank);
  const int64_t b = *rc::gen::inRange<int64_t>(0, rank);
  RC_ASSERT(reads(base.transpose(a - rank, b), base, [&](Index at) {
    std::swap(at[a], at[b]);
    return at;
  }));

  Index dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  std::rotate(dims.begin(), dims.begin() + a, dims.end());
  std::swap(dims[0], dims[b]);
  RC_ASSERT(reads(base.permute(dims), base, [&](const Index& at) {
    Index from(rank);
    for (int64_t i = 0; i < rank; ++i) from[dims[i]] = at[i];
    return from;
  }));

  const int64_t size = base.size(a);
  const int64_t index = *rc::gen::inRange<int64_t>(-size, size);
  RC_ASSERT(reads(base.select(a, index), base, [&](Index at) {
    at.insert(at.begin() + a, index < 0 ? index + size : index);
    return at;
  }));

  const Tensor longer = base.unsqueeze(a);
  RC_ASSERT(longer.size(a) == 1);
  RC_ASSERT(reads(longer, base, [&](Index at) {
    at.erase(at.begin() + a);
    return at;
  }));
  RC_ASSERT(elements(longer.squeeze(a)) == elements(base));
  RC_ASSERT(longer.squeeze(a).dim() == rank);
}

RC_GTEST_PROP(View, SplitCutsWithoutLossAndItsPartsShareMemory, ()) {
  const Tensor base = random_tensor();
  const int64_t d = *rc::gen::inRange<int64_t>(0, base.dim());
  const int64_t size = *rc::gen::inRange<int64_t>(1, 6);
  const std::vector<Tensor> parts = base.split(size, d);
  int64_t first = 0;
  for (const Tensor& part : parts) {
    RC_ASSERT(part.impl()->view_origin == ViewOrigin::kMultiOutput);
    RC_ASSERT(part.size(d) == size || &part == &parts.back());
    RC_ASSERT(reads(part, base, [&](Index at) {
      at[d] += first;
      return at;
    }));
    first += part.size(d);
  }
  RC_ASSERT(first == base.size(d));
}

TEST(View, ExpandStretchesOnesWithStrideZero) {
  const Tensor base = counting({3, 1});
  const Tensor wide = base.expand({2, -1, 4});
  EXPECT_EQ(to_dims(wide.sizes()), (Dims{2, 3, 4}));
  EXPECT_EQ(to_dims(wide.strides()), (Dims{0, 1, 0}));
  EXPECT_TRUE(reads(wide, base, [](const Index& at) { return Index{at[1], 0}; }));
  EXPECT_EQ(counting({1}).expand({0}).numel(), 0);
  expect_error<ShapeError>([&] { base.expand({4, 4}); }, "[expand]", "dimension 0 is 3");
  expect_error<ShapeError>([&] { base.expand({3}); }, "at least as many");
  EXPECT_THROW(base.expand({-1, 3, 1}), ShapeError) << "a new dimension has no size to keep";
  const int64_t many = int64_t{1} << 40;
  EXPECT_THROW(counting({1, 1}).expand({many, many}), ShapeError) << "the count leaves int64";
}

TEST(View, OfAnotherShapeKeepsOrderAndMemory) {
  const Tensor base = counting({2, 6});
  const Tensor view = base.view({3, -1});
  EXPECT_EQ(to_dims(view.sizes()), (Dims{3, 4}));
  EXPECT_EQ(view.data(), base.data());
  EXPECT_EQ(elements(view), elements(base));
}

TEST(View, ThatNeedsACopySuggestsReshapeOrContiguous) {
  const Tensor turned = counting({2, 3}).t();
  expect_error<ShapeError>([&] { turned.view({6}); }, "[view]", "without a copy", "reshape(...)",
                           "contiguous()");
  expect_error<ShapeError>([&] { turned.view({4}); }, "does not hold the 6 elements");
}

TEST(View, ReshapeIsAViewWherePossibleAndElseACopy) {
  const Tensor base = counting({2, 3});
  EXPECT_EQ(base.reshape({6}).data(), base.data());
  const Tensor copied = base.t().reshape({6});
  EXPECT_FALSE(copied.storage() == base.storage());
  EXPECT_EQ(elements(copied), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
}

TEST(View, FlattenJoinsARangeOfDimensions) {
  const Tensor base = counting({2, 3, 4});
  EXPECT_EQ(base.flatten(1).shape(), "[2, 12]");
  EXPECT_EQ(base.flatten(0, 1).shape(), "[6, 4]");
  EXPECT_EQ(base.flatten().data(), base.data());
  EXPECT_EQ(counting({}).flatten().shape(), "[1]");
  expect_error<ShapeError>([&] { base.flatten(2, 0); }, "[flatten]");
}

TEST(View, ReadsBytesAsASmallerOrLargerDtype) {
  const Tensor base = counting({2, 3}).slice(0, 1);  // 3 4 5
  const Tensor halves = base.view(DType::kI32);
  EXPECT_EQ(halves.shape(), "[1, 6]");
  EXPECT_EQ(halves.storage_offset(), 6);
  EXPECT_EQ(halves.data<int32_t>()[2], 4);
  const Tensor back = halves.view(DType::kI64);
  EXPECT_EQ(back.shape(), "[1, 3]");
  EXPECT_EQ(elements(back), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(base.view(DType::kF64).data(), base.data());
}

TEST(View, RefusesADtypeThatWouldCutElements) {
  const Tensor bytes = empty_tensor({2, 6}, DType::kU8);
  expect_error<ShapeError>([&] { bytes.view(DType::kI32); }, "last dimension (6 elements)");
  expect_error<ShapeError>([&] { bytes.slice(1, 2).view(DType::kI32); }, "offset (2 elements)");
  expect_error<ShapeError>([&] { bytes.slice(1, 0, 4).view(DType::kI32); }, "stride (6 elements)");
  expect_error<ShapeError>([&] { bytes.t().view(DType::kI32); }, "contiguous() first");
  EXPECT_THROW(empty_tensor({}, DType::kF32).view(DType::kU8), ShapeError);
}

TEST(View, AsStridedStaysInsideTheStorage) {
  const Tensor base = counting({12}).slice(0, 2);
  EXPECT_EQ(elements(base.as_strided({2, 2}, {4, 1})), (std::vector<int64_t>{2, 3, 6, 7}));
  EXPECT_EQ(elements(base.as_strided({2}, {11}, 0)), (std::vector<int64_t>{0, 11}));
  expect_error<ShapeError>([&] { base.as_strided({2}, {12}, 0); }, "[as_strided]",
                           "leave the storage of 12");
  EXPECT_THROW(base.as_strided({1}, {1}, 12), ShapeError);
  EXPECT_THROW(base.as_strided({1}, {1}, -1), ShapeError);
  EXPECT_THROW(base.as_strided({2}, {-1}), ShapeError);
  EXPECT_THROW(base.as_strided({2}, {1, 1}), ShapeError);
  EXPECT_THROW(base.as_strided({3}, {INT64_MAX}, 0), ShapeError) << "the reach leaves int64";
  EXPECT_EQ(base.as_strided({0}, {1}, 12).numel(), 0);
}

TEST(View, OutOfRangeArgumentsNameTheRange) {
  const Tensor base = counting({2, 3});
  expect_error<IndexError>([&] { base.select(1, 3); }, "[select]", "[-3, 3)", "got 3");
  expect_error<IndexError>([&] { base.transpose(0, 2); }, "[transpose]");
  expect_error<IndexError>([&] { counting({}).slice(0); }, "[slice]");
  expect_error<ShapeError>([&] { base.slice(0, 0, 2, 0); }, "step must be positive, got 0");
  expect_error<ShapeError>([&] { base.split(0); }, "split_size must be positive");
  expect_error<ShapeError>([&] { base.permute({0}); }, "[permute]");
  expect_error<ShapeError>([&] { base.permute({0, 0}); }, "appears twice");
  expect_error<ShapeError>([&] { base.unsqueeze(0).t(); }, "[t]", "transpose");
  EXPECT_EQ(base.slice(0, 0, 2, INT64_MAX).shape(), "[1, 3]");
}

TEST(View, SharesTheVersionAndNamesTheFirstBase) {
  const Tensor base = counting({2, 3});
  const Tensor inner = base.t().slice(0, 1).select(1, 0);
  EXPECT_TRUE(inner.is_view());
  EXPECT_TRUE(inner.base().is_same(base));
  EXPECT_FALSE(base.is_view());
  base.storage()->bump_version();
  EXPECT_EQ(inner.version(), base.version());
  inner.data<int64_t>()[0] = 99;
  EXPECT_EQ(base.data<int64_t>()[1], 99);
}

TEST(View, MadeWhileAutogradIsExcludedRemembersIt) {
  const Tensor base = counting({4});
  const ExcludeKeys guard(Key::kAutograd);
  EXPECT_EQ(base.slice(0, 1).impl()->view_origin, ViewOrigin::kNoGrad);
}

}  // namespace
}  // namespace lockstep
