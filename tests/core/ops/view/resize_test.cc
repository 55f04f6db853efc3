#include "core/ops/view/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/dispatch/call_op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

/// 0, 1, 2, ... in row-major order.
Tensor counting(IntList sizes) {
  const Tensor t = empty_tensor(sizes, DType::kI64);
  std::iota(t.data<int64_t>(), t.data<int64_t>() + t.numel(), int64_t{0});
  return t;
}

/// The elements of a row-major tensor.
std::vector<int64_t> elements(const Tensor& t) {
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

TEST(IsContiguous, InAFormatIsThatOfTheElements) {
  const Tensor images = empty_tensor({2, 3, 4, 5}, DType::kF32);
  EXPECT_TRUE(images.is_contiguous(MemoryFormat::kContiguous));
  EXPECT_FALSE(images.is_contiguous(MemoryFormat::kChannelsLast));
  const Tensor last = clone(images, MemoryFormat::kChannelsLast);
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(last.is_contiguous(MemoryFormat::kContiguous));
  EXPECT_TRUE(contiguous(last, MemoryFormat::kChannelsLast).is_same(last));
}

TEST(IsContiguous, ATensorThatHasTheFormatIsNotCopied) {
  // The stride of the one sample is not the format's own.
  const Tensor sample = empty_tensor({100}, DType::kF32).as_strided({1, 3, 4, 5}, {7, 1, 15, 3});
  EXPECT_TRUE(contiguous(sample, MemoryFormat::kChannelsLast).is_same(sample));
  expect_error<ShapeError>(
      [] {
        contiguous(empty_tensor({2, 3}, DType::kF32), MemoryFormat::kChannelsLast);
      },
      "4 dimensions");
}

TEST(Resize, KeepsTheFirstElementsAndItsMemoryWhereTheyFit) {
  const Tensor t = counting({2, 3});
  const void* before = t.data();
  EXPECT_TRUE(t.resize_({2, 2}).is_same(t));
  EXPECT_EQ(t.shape(), "[2, 2]");
  EXPECT_EQ(to_string(t.strides()), "[2, 1]");
  EXPECT_THAT(elements(t), ElementsAre(0, 1, 2, 3));
  t.resize_({6});
  EXPECT_EQ(t.data(), before);
  EXPECT_THAT(elements(t), ElementsAre(0, 1, 2, 3, 4, 5)) << "the storage never shrank";
}

TEST(Resize, GrowsTheStorageThatViewsShare) {
  const Tensor t = counting({3});
  const Tensor view = t.view({3, 1});
  t.resize_({1 << 16});
  ASSERT_EQ(t.nbytes(), size_t{8} << 16);
  EXPECT_GE(t.storage()->bytes(), t.nbytes());
  EXPECT_EQ(t.data<int64_t>()[2], 2);
  t.data<int64_t>()[2] = 7;
  EXPECT_EQ(view.data<int64_t>()[2], 7);
  EXPECT_EQ(view.shape(), "[3, 1]");
}

TEST(Resize, CountsFromTheStorageOffset) {
  const Tensor tail = counting({6}).slice(0, 4);
  tail.resize_({3});
  EXPECT_EQ(tail.storage_offset(), 4);
  EXPECT_EQ(tail.storage()->bytes(), 7 * sizeof(int64_t));
  EXPECT_EQ(tail.data<int64_t>()[1], 5);
}

TEST(Resize, ToTheSameShapeKeepsStridesAndVersion) {
  const Tensor turned = counting({2, 3}).t();
  const uint32_t version = turned.version();
  turned.resize_({3, 2});
  EXPECT_EQ(to_string(turned.strides()), "[1, 3]");
  EXPECT_EQ(turned.version(), version);
  turned.resize_({3, 2}, MemoryFormat::kContiguous);
  EXPECT_EQ(to_string(turned.strides()), "[2, 1]");
  EXPECT_EQ(turned.version(), version + 1);
}

TEST(Resize, TakesAMemoryFormat) {
  const Tensor t = counting({4});
  t.resize_({2, 3, 4, 5}, MemoryFormat::kChannelsLast);
  EXPECT_TRUE(t.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(t.data<int64_t>()[3], 3);
  expect_error<ShapeError>([&] { t.resize_({2}, MemoryFormat::kChannelsLast); }, "[resize_]");
  expect_error<ShapeError>([&] { t.resize_({2}, MemoryFormat::kPreserve); }, "[resize_]");
}

TEST(Resize, RefusesWhatNoMemoryHolds) {
  const Tensor t = counting({2});
  EXPECT_THROW(t.resize_({-1}), ShapeError);
  EXPECT_THROW(t.resize_({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  expect_error<OutOfMemoryError>([&] { t.resize_({int64_t{1} << 61}); }, "[resize_]");
  EXPECT_EQ(t.shape(), "[2]");
  EXPECT_EQ(t.version(), 0U);
}

TEST(Resize, OfAWindowFitsOrIsRefused) {
  const Ref<Storage> arena = make_ref<Storage>(size_t{4096}, kCPU);
  const Tensor window = empty({4});
  window.set_(make_ref<Storage>(arena, size_t{1024}, size_t{64}), 0, {16}, {1});
  window.resize_({8});
  window.resize_({2, 8});
  EXPECT_THROW(window.resize_({17}), DeviceError);
  EXPECT_EQ(window.shape(), "[2, 8]");
}

TEST(Resize, OnMetaChangesTheShape) {
  const Tensor t = empty_tensor({2}, DType::kF32, kMeta);
  t.resize_({1 << 20});
  EXPECT_EQ(t.shape(), "[1048576]");
  EXPECT_GE(t.storage()->bytes(), t.nbytes());
}

TEST(Resize, IsFoundByName) {
  const Tensor t = counting({4});
  const int64_t sizes[] = {2};
  call_op("resize_", {t, IntList(sizes)});
  EXPECT_EQ(t.shape(), "[2]");
}

TEST(Set, MakesATensorShareTheSourcesElements) {
  const Tensor t = counting({2});
  const Tensor source = counting({2, 3}).t();
  EXPECT_TRUE(t.set_(source).is_same(t));
  EXPECT_EQ(t.shape(), "[3, 2]");
  EXPECT_EQ(to_string(t.strides()), "[1, 3]");
  EXPECT_EQ(t.storage(), source.storage());
  EXPECT_FALSE(t.is_contiguous());
  source.data<int64_t>()[0] = 9;
  EXPECT_EQ(t.data<int64_t>()[0], 9);
}

TEST(Set, LeavesTheOtherTensorsOfTheOldStorageAlone) {
  const Tensor t = counting({4});
  const Tensor view = t.slice(0, 2);
  t.set_(counting({1}));
  EXPECT_EQ(view.data<int64_t>()[1], 3);
  view.set_(counting({2}));
  EXPECT_FALSE(view.is_view());
}

TEST(Set, WithoutASourceLeavesNoElements) {
  const Tensor t = counting({4});
  t.set_();
  EXPECT_EQ(t.shape(), "[0]");
  EXPECT_EQ(t.storage()->bytes(), 0U);
  t.resize_({2});
  EXPECT_EQ(t.nbytes(), 16U);
}

TEST(Set, CountsAsAChangeOfTheTensorAlone) {
  const Tensor t = counting({4});
  const Tensor view = t.slice(0, 2);
  const Tensor source = counting({2});
  t.set_(source);
  EXPECT_EQ(t.version(), 1U);
  EXPECT_EQ(view.version(), 0U);
  EXPECT_EQ(source.version(), 0U);
  source.zero_();
  EXPECT_EQ(t.version(), 2U) << "it is a change of the elements that t shares";
  t.set_(t);
  EXPECT_EQ(t.version(), 2U);
}

TEST(Set, FromAStorageStaysInsideIt) {
  const Tensor held = counting({6});
  const Tensor t = counting({1});
  t.set_(held.storage(), 1, {2, 2}, {2, 1});
  EXPECT_THAT(elements(t), ElementsAre(1, 2, 3, 4));
  expect_error<ShapeError>(
      [&] {
        t.set_(held.storage(), 3, {2, 2}, {2, 1});
      },
      "[set_]", "leave the storage of 6");
  EXPECT_THROW(t.set_(held.storage(), -1, {1}, {1}), ShapeError);
  EXPECT_THROW(t.set_(held.storage(), 0, {2}, {-1}), ShapeError);
  EXPECT_THAT(elements(t), ElementsAre(1, 2, 3, 4));
}

TEST(Set, RefusesAnotherDTypeOrDevice) {
  const Tensor t = counting({2});
  expect_error<DTypeError>([&] { t.set_(empty({2})); }, "[set_]", "float32");
  const Tensor meta = empty_tensor({2}, DType::kI64, kMeta);
  expect_error<DeviceError>([&] { t.set_(meta); }, "[set_]", "meta");
  EXPECT_THROW(t.set_(meta.storage(), 0, {2}, {1}), DeviceError);
}

}  // namespace
}  // namespace lockstep
