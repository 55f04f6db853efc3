#include "core/ops/factory/copy.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/device/copies.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Copy, MovesElementsBetweenAnyStrides) {
  for (const Dims& shape : {Dims{1000}, Dims{70, 33}, Dims{3, 200, 5}, Dims{9, 8, 65, 67},
                            Dims{2, 700}, Dims{700, 3}, Dims{150, 300}}) {
    for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
      const Tensor source = mul(random_tensor(shape), 50).to(dtype);
      const Numbers wanted = values(source);
      const int64_t last = source.dim() - 1;
      const Tensor turned = source.transpose(0, last).contiguous().transpose(0, last);
      EXPECT_EQ(values(turned), wanted) << to_string(shape) << " " << name(dtype);
      const Tensor target =
          empty_tensor(turned.transpose(0, last).sizes(), dtype).transpose(0, last);
      target.copy_(source);
      EXPECT_EQ(values(target), wanted) << to_string(shape) << " " << name(dtype);
    }
  }
}

TEST(Copy, BroadcastsAndCasts) {
  const Tensor target = zeros({3, 4}, DType::kI32);
  target.copy_(tensor_from<float>({1.9F, -2.9F, 3, 4}, {4}));
  EXPECT_EQ(values(target.select(0, 2)), (Numbers{1, -2, 3, 4}));
  target.copy_(tensor_from<float>({7}, {1}));
  EXPECT_EQ(values(target.select(1, 3)), (Numbers{7, 7, 7}));
  EXPECT_EQ(target.version(), 2u);
  expect_error<ShapeError>(
      [&] {
        target.copy_(zeros({2, 3, 4}));
      },
      "[copy_]", "[3, 4]", "[2, 3, 4]");
}

TEST(Copy, CastsKeepWhatTheDTypeHolds) {
  const Tensor x = tensor_from<double>({0, -1.5, 2.5, 1e-3, 70000, 1e300, INFINITY}, {7});
  EXPECT_EQ(values(x.to(DType::kBool)), (Numbers{0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(values(x.to(DType::kF16)),
            (Numbers{0, -1.5, 2.5, static_cast<float>(Half(1e-3F)), INFINITY, INFINITY, INFINITY}));
  EXPECT_EQ(values(x.to(DType::kBF16))[4], static_cast<float>(BFloat16(70000.0F)));
  EXPECT_EQ(values(x.slice(0, 0, 5).to(DType::kI64)), (Numbers{0, -1, 2, 0, 70000}));
  EXPECT_EQ(values(x.slice(0, 0, 3).to(DType::kI8)), (Numbers{0, -1, 2}));
  const int64_t big = (int64_t{1} << 53) + 1;
  const Tensor whole = tensor_from<int64_t>({big, std::numeric_limits<int64_t>::min()}, {2});
  EXPECT_EQ(whole.to(DType::kI64).data<int64_t>()[0], big);
  EXPECT_EQ(whole.to(DType::kF32).data<float>()[0], static_cast<float>(big));
  EXPECT_EQ(whole.to(DType::kI32).data<int32_t>()[0], 1);
}

TEST(Copy, CastsOfHalfTypesRoundTripEveryBitPattern) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Tensor all = empty_tensor({65536}, dtype);
    for (int i = 0; i < 65536; ++i)
      static_cast<uint16_t*>(all.data())[i] = static_cast<uint16_t>(i);
    const Tensor back = all.to(DType::kF32).to(dtype);
    const int exponent = dtype == DType::kBF16 ? 0x7f80 : 0x7c00;
    const int mantissa = exponent == 0x7f80 ? 0x7f : 0x3ff;
    for (int i = 0; i < 65536; ++i) {
      const bool nan = (i & exponent) == exponent && (i & mantissa) != 0;
      if (nan) continue;  // the payload of a NaN may change
      ASSERT_EQ(static_cast<uint16_t*>(back.data())[i], i) << name(dtype);
    }
  }
}

TEST(Copy, CloneKeepsTheOrderOfDimensionsUnlessToldOtherwise) {
  const Tensor t = random_tensor({4, 3}).t();
  EXPECT_TRUE(same(clone(t).strides(), t.strides()));
  EXPECT_TRUE(clone(t, MemoryFormat::kContiguous).is_contiguous());
  EXPECT_EQ(values(clone(t)), values(t));
  EXPECT_TRUE(same(clone(t.expand({2, 3, 4})).strides(), {12, 1, 3}));
  EXPECT_TRUE(same(clone(t.slice(0, 0, 2)).strides(), {1, 2})) << "its gaps are closed";
  const Tensor image = random_tensor({2, 3, 4, 5});
  const Tensor last = clone(image, MemoryFormat::kChannelsLast);
  EXPECT_TRUE(same(last.strides(), {60, 1, 15, 3}));
  EXPECT_EQ(values(last), values(image));
  expect_error<ShapeError>([&] { clone(t, MemoryFormat::kChannelsLast); }, "[clone]", "4");
}

TEST(Copy, ContiguousCopiesOnlyWhenItMustAndCountsIt) {
  const Tensor a = random_tensor({4, 3});
  const int64_t before = hidden_copies().copies;
  EXPECT_TRUE(a.contiguous().is_same(a));
  EXPECT_EQ(hidden_copies().copies, before);
  const Tensor b = a.t().contiguous();
  EXPECT_TRUE(b.is_contiguous());
  EXPECT_EQ(hidden_copies().copies, before + 1);
}

TEST(Copy, ToReturnsItselfWhenNothingChanges) {
  const Tensor a = random_tensor({2});
  EXPECT_TRUE(a.to(DType::kF32).is_same(a));
  EXPECT_TRUE(a.to(kCPU).is_same(a));
  EXPECT_EQ(a.to(DType::kF64).dtype(), DType::kF64);
  const Tensor shape_only = a.to(kMeta);
  EXPECT_EQ(shape_only.device(), kMeta);
  expect_error<DeviceError>([&] { shape_only.to(kCPU); }, "[to]", "meta");
}

TEST(Copy, FillWritesEveryElementOfAnyLayout) {
  const Tensor base = zeros({6, 5});
  const Tensor view = base.t().slice(0, 1, 4);
  view.fill_(2.5);
  EXPECT_EQ(values(base), [] {
    Numbers wanted;
    for (int i = 0; i < 30; ++i) wanted.push_back(i % 5 >= 1 && i % 5 < 4 ? 2.5 : 0);
    return wanted;
  }());
  view.zero_();
  EXPECT_EQ(values(base), Numbers(30, 0));
  EXPECT_EQ(values(fill(zeros({2}, DType::kI64), 2.7)), (Numbers{2, 2}));
  EXPECT_EQ(values(fill(zeros({2}, DType::kBool), 2.7)), (Numbers{1, 1}));
}

TEST(Copy, ThreadsChangeNoBit) {
  const Tensor a = random_tensor({700, 300});
  expect_same_bits_for_any_threads([&] {
    return std::vector<Tensor>{a.t().contiguous(), a.to(DType::kBF16),
                               a.t().to(DType::kF64).contiguous(), a.slice(1, 3, 290).contiguous(),
                               full({100000}, 1.5)};
  });
}

}  // namespace
}  // namespace lockstep
