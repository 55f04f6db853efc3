#include "core/device/copies.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/view/view.h"
#include "core/tensor/allocator.h"
#include "tests/core/device/counting.h"

namespace lockstep {
namespace {

/// Doubles `self` with a kernel that takes contiguous rows only.
Outputs double_rule(const Tensor& self) {
  Outputs outputs = one(to_dims(self.sizes()), DType::kF32);
  outputs.compute = DType::kF32;
  return outputs;
}
void double_kernel(const Out& out, const In& in) {
  ASSERT_TRUE(in.contiguous);
  ASSERT_TRUE(out.contiguous);
  for (int64_t i = 0; i < in.numel; ++i) out.data<float>()[i] = 2 * in.data<float>()[i];
}
LS_OP(test_double, Tensor(const Tensor&), "test_double(Tensor self) -> Tensor")
    .structured(&double_rule)
    .in_place()
    .out();
LS_KERNEL(CPU, "test_double", double_kernel, Strides::kContiguous);

/// Strides of the last input of matrix_kernel.
Dims g_strides;
void matrix_kernel(const Out&, const In& in) { g_strides = to_dims(in.strides()); }
LS_OP(test_matrix, Tensor(const Tensor&), "test_matrix(Tensor self) -> Tensor")
    .structured(&double_rule);
LS_KERNEL(CPU, "test_matrix", matrix_kernel, Strides::kMatrix);

/// Number of copies and of bytes copied while `call` ran.
template <class F>
std::pair<int64_t, int64_t> counted(F&& call) {
  const CopyCount before = hidden_copies();
  call();
  const CopyCount after = hidden_copies();
  return {after.copies - before.copies, after.bytes - before.bytes};
}
using Counts = std::pair<int64_t, int64_t>;

TEST(Copies, NoneIsMadeForRowsOfTheRightDtype) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(counted([&] { op_test_double(x); }), (Counts{0, 0}));
  EXPECT_EQ(counted([&] { op_test_double.in_place(x); }), (Counts{0, 0}));
}

TEST(Copies, StridesThatAKernelCannotReadAreCopiedAndCountedWithTheirBytes) {
  const Tensor x = counting({2, 3});
  Tensor twice;
  EXPECT_EQ(counted([&] { twice = op_test_double(x.t()); }), (Counts{1, 24}));
  EXPECT_EQ(twice.shape(), "[3, 2]");
  EXPECT_EQ(twice.data<float>()[1], 6);
}

TEST(Copies, InPlaceOnSuchStridesCopiesInAndOut) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(counted([&] { op_test_double.in_place(x.t()); }), (Counts{2, 48}));
  EXPECT_EQ(x.data<float>()[5], 10);
}

TEST(Copies, CastsAreCountedButNotThoseOfOneNumber) {
  EXPECT_EQ(counted([] { op_test_double(empty_tensor({4}, DType::kI64)); }), (Counts{1, 32}));
  EXPECT_EQ(counted([] { op_test_double(empty_tensor({}, DType::kI64)); }), (Counts{0, 0}));
}

TEST(Copies, MetaMakesNone) {
  const Tensor x = empty_tensor({2, 3}, DType::kF64, kMeta);
  EXPECT_EQ(counted([&] { op_test_double(x.t()); }), (Counts{0, 0}));
  EXPECT_EQ(counted([&] { op_test_double.in_place(x.t()); }), (Counts{0, 0}));
}

/// Peak of allocated bytes while `call` ran, above those allocated before.
template <class F>
int64_t peak_of(Device device, F&& call) {
  Allocator& memory = allocator(device);
  memory.reset_peak();
  const int64_t before = memory.stats().allocated;
  call();
  return memory.stats().peak_allocated - before;
}

TEST(Copies, OnMetaTheyTakeTheMemoryThatTheyTakeOnTheCpu) {
  const auto peaks = [](Device device) {
    const Tensor wide = empty_tensor({200, 300}, DType::kF64, device);
    const Tensor turned = empty_tensor({300, 200}, DType::kF32, device).t();
    return std::array{peak_of(device, [&] { op_test_double(turned.t()); }),
                      peak_of(device, [&] { op_test_double(turned); }),
                      peak_of(device, [&] { op_test_double(wide); }),
                      peak_of(device, [&] { op_test_double.in_place(turned); }),
                      peak_of(device, [&] { op_test_double.out(turned.t(), wide); }),
                      peak_of(device, [&] { op_test_matrix(turned); })};
  };
  const int64_t one = 200 * 300 * 4;  // whole units of memory
  const std::array<int64_t, 6> expected = {one, 2 * one, 2 * one, 2 * one, one, one};
  EXPECT_EQ(peaks(kCPU), expected);
  EXPECT_EQ(peaks(kMeta), expected);
}

TEST(Copies, MatrixKernelsTakeRowsOrColumnsWithAnyLeadingDimension) {
  const Tensor x = counting({4, 6});
  const auto given = [](const Tensor& t) {
    const int64_t copies = counted([&] { op_test_matrix(t); }).first;
    return std::pair(copies, g_strides);
  };
  EXPECT_EQ(given(x.t()), std::pair(int64_t{0}, Dims{1, 6}));
  EXPECT_EQ(given(x.slice(1, 0, 3)), std::pair(int64_t{0}, Dims{6, 1}));
  EXPECT_EQ(given(x.slice(1, 0, 3).t()), std::pair(int64_t{0}, Dims{1, 6}));
  EXPECT_EQ(given(x.slice(1, 0, 6, 2)), std::pair(int64_t{1}, Dims{3, 1}));
  EXPECT_EQ(given(x.select(0, 0).expand({4, 6})), std::pair(int64_t{1}, Dims{6, 1}));
}

TEST(CopiesDeathTest, TheWarningNamesOperatorTensorBytesAndReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("LOCKSTEP_WARN_COPIES", "1", 1);
        count_hidden_copy("add", counting({2, 3}), "for a reason");
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "copy: .add. float32.2, 3. on cpu, 24 bytes: for a reason");
}

}  // namespace
}  // namespace lockstep
