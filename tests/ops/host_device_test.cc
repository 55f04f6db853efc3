// Every operator on the host device: its kernels run later on a worker thread, from copies of the
// call's arguments, and must give the results of the CPU.

#include <gtest/gtest.h>

#include "core/device/waits.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"
#include "tests/ops/device_agreement.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

constexpr Device kHost{DeviceType::kHost, 0};

TEST(HostDeviceOperators, GiveTheCpusBitsAndStrides) { expect_results_of_cpu(kHost); }

TEST(HostDeviceOperators, WritingFormsWriteWhatTheCpuWrites) { expect_writes_of_cpu(kHost); }

TEST(HostDeviceOperators, OnlyThoseThatReturnValuesWait) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    if (op.kind() != OpKind::kStructured && op.kind() != OpKind::kView) return;
    Arguments there = map_tensors(arguments_of(op, samples.calls[0]), [](const Tensor& tensor) {
      return tensor.defined() ? tensor.to(kHost) : Tensor();
    });
    const int64_t before = hidden_waits();
    call_operator(op, there);
    EXPECT_EQ(hidden_waits(), before);
  });
}

TEST(HostDeviceOperators, ANumberOnTheCpuMeetsTensorsOfAnyDevice) {
  const Tensor x = full({3}, 2, {DType::kF32, kHost});
  const Tensor number = scalar_tensor(5, {DType::kF32, kCPU});
  const Tensor sum = add(number, x);
  EXPECT_EQ(sum.device(), kHost);
  EXPECT_EQ(sum.to(kCPU).data<float>()[2], 7);
  x.mul_(number);
  EXPECT_EQ(x.to(kCPU).data<float>()[0], 10);
}

TEST(HostDeviceOperators, TensorsOfTwoDevicesAreRefused) {
  const Tensor x = full({3}, 2, {DType::kF32, kHost});
  expect_error<DeviceError>([&] { add(x, full({3}, 1)); }, "different devices");
  expect_error<DeviceError>([&] { scalar_tensor(5).add_(x.select(0, 0)); }, "different devices");
}

}  // namespace
}  // namespace lockstep
