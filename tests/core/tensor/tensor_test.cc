#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

TEST(Tensor, KnowsItsGeometry) {
  const Tensor t = empty_tensor({2, 3, 4}, DType::kF64);
  EXPECT_EQ(t.dim(), 3);
  EXPECT_EQ(t.numel(), 24);
  EXPECT_EQ(t.nbytes(), 24u * 8);
  EXPECT_EQ(t.size(-1), 4);
  EXPECT_EQ(t.stride(0), 12);
  EXPECT_EQ(t.storage_offset(), 0);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_FALSE(t.is_view());
  EXPECT_FALSE(t.base().defined());
  EXPECT_EQ(t.key_set(), KeySet(Key::kCPU));
  EXPECT_EQ(to_string(t), "float64[2, 3, 4] on cpu");
  expect_error<IndexError>([&] { t.size(3); }, "[size]");
}

TEST(Tensor, AZeroDimensionalOneHasOneElement) {
  const Tensor t = empty_tensor({}, DType::kI64);
  EXPECT_EQ(t.dim(), 0);
  EXPECT_EQ(t.numel(), 1);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.shape(), "[]");
  for (const int64_t dim : {-1, 0}) {
    expect_error<IndexError>([&] { t.size(dim); }, "[size]", "of a 0-d tensor");
    expect_error<IndexError>([&] { t.stride(dim); }, "[stride]", "of a 0-d tensor");
  }
}

TEST(Tensor, CopiesShareElementsAndMetadata) {
  const Tensor a = empty_tensor({2}, DType::kF32);
  const Tensor b = a;
  b.data<float>()[1] = 5;
  EXPECT_EQ(a.data<float>()[1], 5);
  EXPECT_TRUE(a.is_same(b));
  EXPECT_FALSE(a.is_same(alias_tensor(a, {2}, {1}, 0, DType::kF32, true)));
}

TEST(Tensor, UndefinedOnesThrowOnEveryUse) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(to_string(none), "undefined tensor");
  const auto refuses = [](auto&& use) { expect_error<DispatchError>(use, "undefined tensor"); };
  refuses([&] { none.dim(); });
  refuses([&] { none.sizes(); });
  refuses([&] { none.numel(); });
  refuses([&] { none.dtype(); });
  refuses([&] { none.device(); });
  refuses([&] { none.data(); });
  refuses([&] { none.data<float>(); });
  refuses([&] { none.version(); });
  refuses([&] { none.storage(); });
  refuses([&] { none.is_view(); });
  refuses([&] { none.requires_grad(); });
}

TEST(Tensor, AnOperatorGivenAnUndefinedOneNamesItself) {
  expect_error<DispatchError>([] { Tensor().t(); }, "[t]", "undefined");
}

TEST(Tensor, DataOfTheWrongTypeIsAnError) {
  const Tensor t = empty_tensor({2}, DType::kBF16);
  EXPECT_NO_THROW(t.data<BFloat16>());
  expect_error<DTypeError>([&] { t.data<float>(); }, "expected float32, got bfloat16");
  expect_error<DTypeError>([&] { t.data<Half>(); }, "expected float16, got bfloat16");
}

TEST(Tensor, MetaTensorsHaveShapesButNoMemory) {
  const Tensor t = empty_tensor({int64_t{1} << 20, int64_t{1} << 20}, DType::kF32, kMeta);
  EXPECT_EQ(t.numel(), int64_t{1} << 40);
  EXPECT_EQ(t.data(), nullptr);
  EXPECT_EQ(t.slice(0, 5).data(), nullptr) << "an offset from nothing is still nothing";
  EXPECT_EQ(t.key_set(), KeySet(Key::kMeta));
}

TEST(Tensor, MoreBytesThanAnAddressHoldsIsOutOfMemory) {
  expect_error<OutOfMemoryError>(
      [] {
        empty_tensor({int64_t{1} << 31, int64_t{1} << 31}, DType::kF64);
      },
      "[empty]");
  EXPECT_THROW(empty_tensor({int64_t{1} << 40, int64_t{1} << 40}, DType::kF64), ShapeError);
}

TEST(Tensor, StridedMemoryIsLargeEnoughForTheFarthestElement) {
  const Tensor t = empty_strided_tensor({2, 3}, {1, 2}, DType::kF32);
  EXPECT_EQ(t.storage()->bytes(), 6u * 4);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(empty_strided_tensor({0, 3}, {3, 1}, DType::kF32).storage()->bytes(), 0u);
}

TEST(OptionalTensor, AnUndefinedTensorIsNone) {
  const Tensor t = empty_tensor({2}, DType::kF32);
  EXPECT_TRUE(OptionalTensor(t).has_value());
  EXPECT_TRUE(OptionalTensor(t).value_or_undefined().is_same(t));
  EXPECT_FALSE(OptionalTensor(Tensor()).has_value());
  EXPECT_FALSE(OptionalTensor(std::nullopt).value_or_undefined().defined());
}

TEST(AliasTensor, AViewOfAViewHasTheFirstBaseAndTheStricterOrigin) {
  const Tensor base = empty_tensor({4}, DType::kF32);
  const Tensor multi = alias_tensor(base, {4}, {1}, 0, DType::kF32, true, ViewOrigin::kMultiOutput);
  const Tensor inner = alias_tensor(multi, {2}, {1}, 0, DType::kF32, true);
  EXPECT_TRUE(inner.base().is_same(base));
  EXPECT_EQ(inner.impl()->view_origin, ViewOrigin::kMultiOutput);
  const Tensor loose = alias_tensor(base, {2}, {1}, 0, DType::kF32, false);
  EXPECT_FALSE(loose.is_view());
  EXPECT_EQ(loose.data(), base.data());
}

}  // namespace
}  // namespace lockstep
