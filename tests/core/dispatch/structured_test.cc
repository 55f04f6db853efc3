#include <gtest/gtest.h>

#include <algorithm>

#include "core/dispatch/forms.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/view/view.h"
#include "tests/core/dispatch/floats.h"
#include "tests/core/expect_error.h"
#include "tests/core/tensor/places.h"

namespace lockstep {
namespace {

int g_rules = 0;
int g_kernels = 0;

/// f32 sum of two tensors that broadcast, any strides.
Outputs add_rule(const Tensor& self, const Tensor& other) {
  ++g_rules;
  Outputs outputs = one(broadcast("test_add", self.sizes(), other.sizes()), DType::kF32);
  outputs.compute = DType::kF32;
  return outputs;
}
void add_kernel(const Out& out, const In& a, const In& b) {
  ++g_kernels;
  const auto to = places(out.sizes(), out.strides());
  const auto from_a = places(out.sizes(), broadcast_strides(a.sizes(), a.strides(), out.sizes()));
  const auto from_b = places(out.sizes(), broadcast_strides(b.sizes(), b.strides(), out.sizes()));
  for (size_t i = 0; i < to.size(); ++i) {
    out.data<float>()[to[i]] = a.data<float>()[from_a[i]] + b.data<float>()[from_b[i]];
  }
}
LS_OP(test_add, Tensor(const Tensor&, const Tensor&),
      "test_add(Tensor self, Tensor other) -> Tensor")
    .structured(&add_rule)
    .in_place()
    .out();
LS_KERNEL(CPU, "test_add", add_kernel, Strides::kAny);

/// Sum of a list of vectors, plus an optional one.
Outputs gather_rule(TensorList list, OptionalTensor) {
  return one(to_dims(list[0].sizes()), DType::kF32);
}
void gather_kernel(const Out& out, InList list, const In& extra) {
  for (int64_t i = 0; i < out.numel; ++i) {
    float sum = extra.defined() ? extra.data<float>()[i] : 0;
    for (const In& in : list) sum += in.data<float>()[i];
    out.data<float>()[i] = sum;
  }
}
LS_OP(test_gather, Tensor(TensorList, OptionalTensor),
      "test_gather(Tensor[] tensors, Tensor? extra) -> Tensor")
    .structured(&gather_rule)
    .out();
LS_KERNEL(CPU, "test_gather", gather_kernel, Strides::kContiguous);

using Pair = std::tuple<Tensor, Tensor>;
/// A copy of self transposed in memory and, if `second`, another result.
Outputs pair_rule(const Tensor& self, bool second) {
  Outputs outputs = one(to_dims(self.sizes()), DType::kF32);
  outputs.specs[0].strides = Dims{1, self.size(0)};
  OutputSpec& spec = outputs.specs.emplace_back();
  spec.sizes = {self.size(0)};
  spec.dtype = DType::kI64;
  spec.present = second;
  return outputs;
}
void pair_kernel(const Out& first, const Out& second, const In&, bool wanted) {
  EXPECT_EQ(first.stride(0), 1);
  EXPECT_EQ(second.defined(), wanted);
}
LS_OP(test_pair, Pair(const Tensor&, bool),
      "test_pair(Tensor self, bool second) -> (Tensor, Tensor)")
    .structured(&pair_rule);
LS_KERNEL(CPU, "test_pair", pair_kernel, Strides::kAny);

Outputs fill_rule(MutableTensorList) { return {}; }
void fill_kernel(OutList list) {
  for (const Out& out : list) std::fill_n(out.data<float>(), out.numel, 9.0f);
}
LS_OP(test_fill_each, void(MutableTensorList), "test_fill_each(Tensor(a!)[] self) -> ()")
    .structured(&fill_rule);
LS_KERNEL(CPU, "test_fill_each", fill_kernel, Strides::kContiguous);

Outputs same_rule(const Tensor& self) { return one(to_dims(self.sizes()), self.dtype()); }
LS_OP(test_no_kernel, Tensor(const Tensor&), "test_no_kernel(Tensor self) -> Tensor")
    .structured(&same_rule);

TEST(Structured, AllocatesWhatTheRuleSays) {
  const Tensor sum = op_test_add(vec({1, 2, 3}), vec({10}));
  EXPECT_EQ(floats(sum), (Floats{11, 12, 13}));
  const auto [first, second] = op_test_pair(empty_tensor({2, 3}, DType::kF32), true);
  EXPECT_EQ(to_dims(first.strides()), (Dims{1, 2}));
  EXPECT_EQ(second.dtype(), DType::kI64);
}

TEST(Structured, AResultThatIsNotPresentIsUndefined) {
  EXPECT_FALSE(std::get<1>(op_test_pair(empty_tensor({2, 3}, DType::kF32), false)).defined());
}

TEST(Structured, CastsArgumentsToTheComputeDtype) {
  const Tensor whole = empty_tensor({2}, DType::kI64);
  whole.data<int64_t>()[0] = 3;
  whole.data<int64_t>()[1] = 4;
  EXPECT_EQ(floats(op_test_add(whole, vec({0.5}))), (Floats{3.5, 4.5}));
}

TEST(Structured, OutIsResizedKeepingItsMemoryWhenLargeEnough) {
  Tensor out = empty_tensor({0}, DType::kF32);
  EXPECT_TRUE(op_test_add.out(vec({1, 2}), vec({1}), out).is_same(out));
  EXPECT_EQ(floats(out), (Floats{2, 3}));
  const void* memory = out.data();
  op_test_add.out(vec({5}), vec({1}), out);
  EXPECT_EQ(floats(out), (Floats{6}));
  EXPECT_EQ(out.data(), memory);
  EXPECT_EQ(out.version(), 2u);
}

TEST(Structured, OutThatIsAViewIsNotResized) {
  const Tensor base = vec({1, 2, 3, 4});
  expect_error<ShapeError>(
      [&] {
        op_test_add.out(vec({1, 2}), vec({1}), base.slice(0, 1));
      },
      "[test_add.out] out= is a view", "expected shape [2], got [3]");
  EXPECT_THROW(op_test_add.out(vec({1, 2}), vec({1}), base.slice(0, 0, 0)), ShapeError);
  op_test_add.out(vec({1, 2}), vec({1}), base.slice(0, 1, 3));
  EXPECT_EQ(floats(base), (Floats{1, 2, 3, 4}));
}

TEST(Structured, InPlaceWritesSelfAndCountsAVersionOnce) {
  const Tensor x = vec({1, 2, 3});
  const Tensor y = vec({10});
  EXPECT_TRUE(op_test_add.in_place(x, y).is_same(x));
  EXPECT_EQ(floats(x), (Floats{11, 12, 13}));
  EXPECT_EQ(x.version(), 1u);
  EXPECT_EQ(y.version(), 0u);
  op_test_add(x, y);
  EXPECT_EQ(x.version(), 1u) << "the functional form changes nothing";
  expect_error<ShapeError>([&] { op_test_add.in_place(y, x); }, "does not fit in place",
                           "expected shape [1], got [3]");
}

TEST(Structured, AFailedCallDoesNotCountAsAChange) {
  const Tensor x = vec({1});
  EXPECT_THROW(op_test_add.in_place(x, vec({1, 2})), ShapeError);
  EXPECT_EQ(x.version(), 0u);
}

TEST(Structured, TheDestinationsDtypeMustHoldTheResult) {
  const Tensor wide = empty_tensor({2}, DType::kF64);
  op_test_add.out(vec({1, 2}), vec({0.5}), wide);
  EXPECT_EQ(wide.data<double>()[1], 2.5);
  expect_error<DTypeError>(
      [] {
        op_test_add.out(vec({1, 2}), vec({1}), empty_tensor({2}, DType::kI64));
      },
      "cannot be stored", "float32", "int64");
}

TEST(Structured, MetaRunsOnlyTheRule) {
  const Tensor x = empty_tensor({2, 3}, DType::kF32, kMeta);
  g_rules = g_kernels = 0;
  const Tensor sum = op_test_add(x, x);
  EXPECT_EQ(sum.shape(), "[2, 3]");
  EXPECT_EQ(sum.device(), kMeta);
  op_test_add.in_place(x, empty_tensor({3}, DType::kF64, kMeta));
  EXPECT_EQ(x.version(), 1u);
  EXPECT_EQ(g_rules, 2);
  EXPECT_EQ(g_kernels, 0);
  EXPECT_THROW(op_test_add(x, empty_tensor({4}, DType::kF32, kMeta)), ShapeError);
}

TEST(Structured, TensorsOnDifferentDevicesAreAnErrorInEveryKindOfArgument) {
  const Tensor here = vec({1, 2});
  const Tensor there = empty_tensor({2}, DType::kF32, kMeta);
  const auto refuses = [](auto&& call) {
    expect_error<DeviceError>(call, "different devices: expected cpu, got meta");
  };
  refuses([&] { op_test_add(here, there); });
  refuses([&] { op_test_gather(std::vector{here, there}, {}); });
  refuses([&] { op_test_gather(std::vector{here}, there); });
}

TEST(Structured, WritesIntoListsAndBumpsEach) {
  const std::vector<Tensor> list = {vec({1}), vec({2, 3})};
  op_test_fill_each(list);
  EXPECT_EQ(floats(list[1]), (Floats{9, 9}));
  EXPECT_EQ(list[0].version(), 1u);
  EXPECT_EQ(list[1].version(), 1u);
  const std::vector<Tensor> mixed = {vec({1}), empty_tensor({1}, DType::kF32, kMeta)};
  EXPECT_THROW(op_test_fill_each(mixed), DeviceError);
}

TEST(Structured, WithoutAKernelTheBackendIsNamed) {
  expect_error<DispatchError>([] { op_test_no_kernel(vec({1})); }, "no kernel for CPU", "Meta");
}

const Tensor& set_to_five(const Tensor& self, const Tensor&) {
  self.data<float>()[0] = 5;
  return self;
}
TEST(Structured, AKernelGivenToTheInPlaceFormReplacesTheWrapper) {
  const Tensor x = vec({1});
  {
    const Registration own = dispatcher().register_kernel(
        "test_add_", kernel_record(Key::kCPU, &set_to_five, Strides::kAny));
    EXPECT_EQ(floats(op_test_add.in_place(x, x)), (Floats{5}));
  }
  EXPECT_EQ(floats(op_test_add.in_place(x, x)), (Floats{10}));
}

}  // namespace
}  // namespace lockstep
