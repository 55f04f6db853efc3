#include "core/device/kernel_recorder.h"

#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"

namespace lockstep {
namespace {

constexpr Device kHostDevice{DeviceType::kHost, 0};

TEST(KernelRecorder, KernelsRunAtOnceAndAgain) {
  const Tensor x = full({4}, 3, {DType::kF32, kHostDevice});
  synchronize(kHostDevice);
  Tensor y;
  std::vector<std::unique_ptr<QueuedKernel>> kernels;
  {
    KernelRecorder recorder;
    y = x.mul(2).add(1);
    kernels = recorder.finish();
  }
  EXPECT_EQ(KernelRecorder::active(), nullptr);
  EXPECT_EQ(y.data<float>()[3], 7);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0]->op().name(), "mul.Scalar");
  x.data<float>()[3] = 5;
  for (const auto& kernel : kernels) run_here(*kernel);
  EXPECT_EQ(y.data<float>()[3], 11);
}

TEST(KernelRecorder, RandomKernelsTakeTheNumbersThatWereReservedForThem) {
  manual_seed(4);
  const Tensor expected = rand({5});
  const Tensor behind = rand({5});
  manual_seed(4);
  KernelRecorder recorder;
  const Tensor drawn = rand({5}, {DType::kF32, kHostDevice});
  const std::vector<std::unique_ptr<QueuedKernel>> kernels = recorder.finish();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(drawn.data<float>()[i], expected.data<float>()[i]);
  drawn.data<float>()[0] = -1;
  run_here(*kernels.at(0));
  EXPECT_EQ(drawn.data<float>()[0], expected.data<float>()[0]);
  EXPECT_EQ(rand({5}).data<float>()[0], behind.data<float>()[0]);
}

}  // namespace
}  // namespace lockstep
