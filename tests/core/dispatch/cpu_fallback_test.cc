#include "core/dispatch/cpu_fallback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/autograd.h"
#include "core/device/copies.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"
#include "tests/core/tensor/far_memory.h"

namespace lockstep {
namespace {

constexpr Device kFar{DeviceType::kPrivate1, 0};
constexpr Device kOtherFar{DeviceType::kPrivate1, 1};

using OutOp = TypedOp<const Tensor&(const Tensor&, const Tensor&, Scalar, const Tensor&)>;

/// Adds 1 to every element of all tensors, in place.
Outputs nothing_rule(MutableTensorList) { return {}; }
void add_one_kernel(OutList list) {
  for (const Out& out : list) {
    for (int64_t i = 0; i < out.numel; ++i) out.data<float>()[i] += 1;
  }
}
LS_OP(test_far_add_one_each, void(MutableTensorList),
      "test_far_add_one_each(Tensor(a!)[] self) -> ()")
    .structured(&nothing_rule);
LS_KERNEL(CPU, "test_far_add_one_each", add_one_kernel, Strides::kAny);

/// Product in float32 of two tensors of the same shape.
Outputs product_rule(const Tensor& self, const Tensor&) {
  Outputs outputs = one(to_dims(self.sizes()), DType::kF32);
  outputs.compute = DType::kF32;
  return outputs;
}
LS_OP(test_far_product, Tensor(const Tensor&, const Tensor&),
      "test_far_product(Tensor self, Tensor other) -> Tensor")
    .structured(&product_rule)
    .in_place();

int g_own_products = 0;
/// The far device's own kernel for test_far_product.
void far_product(const Out& out, const In& a, const In& b) {
  ++g_own_products;
  float* to = static_cast<float*>(FarMemory::near(out.address));
  const float* x = static_cast<const float*>(FarMemory::near(a.address));
  const float* y = static_cast<const float*>(FarMemory::near(b.address));
  for (int64_t i = 0; i < out.numel; ++i) to[i] = x[i] * y[i];
}
/// The CPU kernel is wrong on purpose, to show which kernel ran.
void cpu_product(const Out& out, const In&, const In&) {
  for (int64_t i = 0; i < out.numel; ++i) out.data<float>()[i] = -1;
}
LS_KERNEL(CPU, "test_far_product", cpu_product, Strides::kContiguous);

std::vector<float> values(const Tensor& tensor) {
  const Tensor here = tensor.to(kCPU).to(DType::kF32).contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

Tensor far(std::initializer_list<float> elements, IntList sizes) {
  return tensor_from<float>(elements, sizes).to(kFar);
}

class CpuFallback : public ::testing::Test {
 protected:
  static FarMemory& memory() {
    static FarMemory* const instance = new FarMemory();
    return *instance;
  }
  static void SetUpTestSuite() { set_allocator(DeviceType::kPrivate1, &memory()); }
  static void TearDownTestSuite() { set_allocator(DeviceType::kPrivate1, nullptr); }
  void TearDown() override { EXPECT_EQ(memory().blocks(), 0) << "memory of the device leaks"; }

  Registration fallback_ = register_cpu_fallback(Key::kPrivate1);
};

TEST_F(CpuFallback, TensorsGoToTheDeviceAndBack) {
  const Tensor here = tensor_from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor there = here.to(kFar);
  EXPECT_EQ(there.device(), kFar);
  EXPECT_EQ(there.to(kCPU).device(), kCPU);
  EXPECT_TRUE(equal(there.to(kCPU), here));
  EXPECT_TRUE(equal(to(there, DType::kI64, kCPU), here.to(DType::kI64)));
  EXPECT_EQ(values(there.t().to(kCPU)), values(here.t()));
  EXPECT_EQ(there.t().to(kCPU).strides()[0], 1) << "strides stay";
  EXPECT_EQ(there.to(kOtherFar).device(), kOtherFar);
  EXPECT_EQ(values(there.to(kOtherFar)), values(here));
}

TEST_F(CpuFallback, AResultIsTheCpusAndOnTheDevice) {
  const Tensor sum = add(far({1, 2, 3, 4}, {2, 2}), far({10, 20}, {2}));
  EXPECT_EQ(sum.device(), kFar);
  EXPECT_EQ(values(sum), (std::vector<float>{11, 22, 13, 24}));
  const Tensor product = mm(far({1, 2, 3, 4}, {2, 2}), far({1, 0, 0, 1}, {2, 2}).t());
  EXPECT_EQ(values(product), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(CpuFallback, ResultsHaveTheStridesTheyHaveOnTheCpu) {
  const Tensor there = far({1, 2, 3, 4, 5, 6}, {2, 3}).t();
  EXPECT_EQ(there.clone().strides()[0], 1);
  EXPECT_EQ(values(there.clone()), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(there.contiguous().is_contiguous());
}

TEST_F(CpuFallback, TheInPlaceFormWritesIntoItsTensor) {
  const Tensor x = far({1, 2}, {2});
  const void* address = x.data();
  const uint32_t version = x.version();
  const Tensor& result = x.add_(far({10, 20}, {2}));
  EXPECT_TRUE(result.is_same(x));
  EXPECT_EQ(x.data(), address);
  EXPECT_EQ(x.version(), version + 1);
  EXPECT_EQ(values(x), (std::vector<float>{11, 22}));
}

TEST_F(CpuFallback, AChangeInPlaceOfAViewReachesTheBaseAndNothingElseOfIt) {
  const Tensor base = far({1, 2, 3, 4, 5, 6}, {2, 3});
  base.select(1, 1).zero_();
  EXPECT_EQ(values(base), (std::vector<float>{1, 0, 3, 4, 0, 6}));
  base.select(0, 0).add_(base.select(0, 1));
  EXPECT_EQ(values(base), (std::vector<float>{5, 0, 9, 4, 0, 6}));
  const Tensor late = far(std::initializer_list<float>{}, {0});
  EXPECT_EQ(values(late.add_(late)), std::vector<float>());
}

TEST_F(CpuFallback, TheOutFormFillsAndResizesItsDestination) {
  const OutOp add_out(&dispatcher().find("add.out"));
  const Tensor a = far({1, 2}, {2});
  const Tensor out = empty({0}, kFar);
  EXPECT_TRUE(add_out(a, a, 1, out).is_same(out));
  EXPECT_EQ(values(out), (std::vector<float>{2, 4}));
  EXPECT_EQ(out.device(), kFar);

  const Tensor wide = zeros({2, 2}, kFar);
  add_out(a, a, 1, wide.select(1, 0));
  EXPECT_EQ(values(wide), (std::vector<float>{2, 0, 4, 0}));
  expect_error<ShapeError>([&] { add_out(a, a, 1, wide.select(1, 0).slice(0, 0, 1)); },
                           "is a view and cannot be resized");
}

TEST_F(CpuFallback, ADestinationThatOverlapsAnInputIsRefusedAsOnTheCpu) {
  const OutOp add_out(&dispatcher().find("add.out"));
  const Tensor x = far({1, 2, 3, 4}, {4});
  expect_error<ShapeError>(
      [&] { add_out(x.slice(0, 0, 3), x.slice(0, 0, 3), 1, x.slice(0, 1, 4)); },
      "shares part of its memory");
  EXPECT_EQ(values(x), (std::vector<float>{1, 2, 3, 4})) << "nothing was written";
}

TEST_F(CpuFallback, FactoriesMakeTensorsThere) {
  EXPECT_EQ(values(zeros({2}, kFar)), (std::vector<float>{0, 0}));
  EXPECT_EQ(values(full({2}, 3, {DType::kF32, kFar})), (std::vector<float>{3, 3}));
  EXPECT_EQ(values(arange(3, kFar)), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(zeros_like(zeros({2}), kFar).device(), kFar);
  EXPECT_EQ(zeros_like(zeros({2}, kFar), kCPU).device(), kCPU);
  EXPECT_EQ(zeros_like(zeros({2}, kFar), kMeta).device(), kMeta);
  EXPECT_EQ(values(zeros_like(zeros({2}, kMeta), kFar)), (std::vector<float>{0, 0}));
  const DefaultDeviceGuard guard(kFar);
  EXPECT_EQ(ones({2}).device(), kFar);
  EXPECT_EQ(tensor_from<float>({1}, {1}).device(), kFar);
}

TEST_F(CpuFallback, RandomNumbersAreTheCpus) {
  const Tensor here = empty({5});
  const Tensor there = empty({5}, kFar);
  manual_seed(7);
  normal_(here);
  manual_seed(7);
  normal_(there);
  EXPECT_EQ(values(there), values(here));
}

TEST_F(CpuFallback, CopyMovesBetweenDevices) {
  const Tensor here = tensor_from<float>({1, 2, 3, 4}, {2, 2});
  const Tensor there = zeros({2, 2}, kFar);
  there.copy_(here.t());
  EXPECT_EQ(values(there), (std::vector<float>{1, 3, 2, 4}));
  const Tensor back = zeros({2, 2}, DType::kF64);
  back.copy_(there);
  EXPECT_EQ(values(back), (std::vector<float>{1, 3, 2, 4}));
}

TEST_F(CpuFallback, NumbersComeBackToTheCaller) {
  EXPECT_EQ(far({2.5f}, {1}).item<float>(), 2.5f);
  EXPECT_TRUE(equal(far({1, 2}, {2}), far({1, 2}, {2})));
  EXPECT_EQ(far({3, 1, 2}, {3}).argmax().item<int64_t>(), 0);
}

TEST_F(CpuFallback, ListsTuplesAndResultsOfUnknownSizeWork) {
  const Tensor a = far({1, 0}, {2});
  EXPECT_EQ(values(cat({a, a})), (std::vector<float>{1, 0, 1, 0}));
  const auto [sorted, order] = sort(far({3, 1, 2}, {3}));
  EXPECT_EQ(values(sorted), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(order.device(), kFar);
  EXPECT_EQ(values(order), (std::vector<float>{1, 2, 0}));
  EXPECT_EQ(values(nonzero(a)), (std::vector<float>{0}));
  EXPECT_EQ(values(a.split(1)[1]), (std::vector<float>{0}));

  const Tensor b = far({5}, {1});
  const uint32_t version = b.version();
  op_test_far_add_one_each(MutableTensorList(std::vector<Tensor>{a, b}));
  EXPECT_EQ(values(a), (std::vector<float>{2, 1}));
  EXPECT_EQ(values(b), (std::vector<float>{6}));
  EXPECT_EQ(b.version(), version + 1);
}

TEST_F(CpuFallback, GradientsAreTheCpusAndOnTheDevice) {
  const auto gradients = [](Device device) {
    const Tensor x = tensor_from<float>({0.5f, -1, 2, 0.25f}, {2, 2}).to(device);
    const Tensor w = tensor_from<float>({1, 2, -3, 4}, {2, 2}).to(device);
    x.set_requires_grad();
    w.set_requires_grad();
    Tensor y = x.mm(w.t()).tanh().mul(x);
    y.select(0, 0).add_(w.select(0, 1));
    y.sum().backward();
    y = x.to(kCPU).mul(w.to(kCPU));  // also differentiates through the copies between devices
    y.sum().backward();
    EXPECT_EQ(x.grad().device(), device);
    std::vector<float> all = values(x.grad());
    for (float g : values(w.grad())) all.push_back(g);
    return all;
  };
  EXPECT_EQ(gradients(kFar), gradients(kCPU));
}

TEST_F(CpuFallback, EveryCopyIsCounted) {
  const Tensor a = far({1, 2, 3, 4}, {4});
  const CopyCount before = hidden_copies();
  add(a, a.slice(0, 0, 1));
  EXPECT_EQ(hidden_copies().copies - before.copies, 3);
  EXPECT_EQ(hidden_copies().bytes - before.bytes, 16 + 4 + 16);
}

TEST_F(CpuFallback, OnlyThePartOfAStorageThatACallNamesIsCopied) {
  const Tensor large = zeros({1000}, kFar);
  const int before = memory().transfers();
  large.slice(0, 500, 501).add_(large.slice(0, 501, 502));
  EXPECT_EQ(memory().transfers() - before, 2) << "one window in, one element back";
}

TEST_F(CpuFallback, AKernelOfTheDevicesOwnGoesFirst) {
  const Registration own = dispatcher().register_kernel(
      "test_far_product", kernel_record(Key::kPrivate1, &far_product, Strides::kContiguous));
  g_own_products = 0;
  const Tensor x = far({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(values(op_test_far_product(x, x)), (std::vector<float>{1, 4, 9, 16}));
  EXPECT_EQ(values(op_test_far_product.in_place(x, x)), (std::vector<float>{1, 4, 9, 16}));
  EXPECT_EQ(g_own_products, 2);
  // To make contiguous and to cast, the wrapper calls `copy`, which uses the fallback on this
  // device.
  EXPECT_EQ(values(op_test_far_product(x.t(), x)), (std::vector<float>{1, 36, 36, 256}));
  const Tensor integers = to(x, DType::kI64);
  EXPECT_EQ(values(op_test_far_product(x, integers)), (std::vector<float>{1, 16, 81, 256}));
  EXPECT_EQ(g_own_products, 4);
}

/// Negates f32; other dtypes are the cpu's.
void far_negative(const Operator& op, KeySet keys, Stack& stack) {
  const Tensor& self = stack.arguments()[0].tensor();
  if (self.dtype() != DType::kF32) return cpu_fallback(op, keys, stack);
  ++g_own_products;
  Tensor result = empty_like(self);
  const auto* const from = static_cast<const float*>(FarMemory::near(self.data()));
  auto* const to = static_cast<float*>(FarMemory::near(result.data()));
  for (int64_t i = 0; i < self.numel(); ++i) to[i] = -from[i];
  stack.results().push_back(Value(std::move(result)));
}

TEST_F(CpuFallback, AKernelOfTheDevicesOwnMayHandACallOn) {
  KernelRecord record;
  record.key = Key::kPrivate1;
  record.boxed = far_negative;
  const Registration kernel = dispatcher().register_kernel("neg", record);
  const int before = g_own_products;
  EXPECT_EQ(values(neg(far({1, 2}, {2}))), (std::vector<float>{-1, -2}));
  EXPECT_EQ(g_own_products, before + 1);
  const Tensor whole = neg(far({1, 2}, {2}).to(DType::kI64));
  EXPECT_EQ(g_own_products, before + 1);
  EXPECT_EQ(whole.device(), kFar);
  EXPECT_EQ(values(whole), (std::vector<float>{-1, -2}));
}

TEST_F(CpuFallback, TensorsOfOneCallMustBeOnOneDevice) {
  const Tensor there = far({1}, {1});
  expect_error<DeviceError>([&] { add(there, zeros({1})); }, "[add.Tensor]", "different devices",
                            "private1:0", "cpu");
  expect_error<DeviceError>([&] { add(there, there.to(kOtherFar)); }, "private1:1");
}

TEST_F(CpuFallback, WhatTheOperatorRefusesIsRefused) {
  expect_error<ShapeError>([] { mm(zeros({2, 3}, kFar), zeros({2, 3}, kFar)); }, "[mm]");
}

TEST_F(CpuFallback, ABackendHasOneFallbackAndTheCpuNone) {
  expect_error<DispatchError>([] { (void)register_cpu_fallback(Key::kPrivate1); }, "Private1",
                              "cpu_fallback_test.cc");
  expect_error<DispatchError>([] { (void)register_cpu_fallback(Key::kCPU); }, "[cpu_fallback]");
  expect_error<DispatchError>([] { (void)register_cpu_fallback(Key::kAutograd); }, "Autograd");
}

TEST_F(CpuFallback, WithoutItTheMissingKernelIsNamed) {
  const Tensor there = far({1, 2}, {2});
  fallback_ = Registration();
  expect_error<DispatchError>([&] { add(there, there); }, "[add.Tensor]", "Private1");
}

}  // namespace
}  // namespace lockstep
