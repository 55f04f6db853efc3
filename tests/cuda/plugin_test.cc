// Operators of plug-ins with kernels for GPUs.

#include "core/plugin/plugin.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "core/base/environment_flag.h"
#include "core/cuda/runtime.h"
#include "core/device/copies.h"
#include "core/device/stream_sanitizer.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/allocator.h"
#include "tests/conformance/elements.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/gpu.h"
#include "tests/plugins/built_plugin.h"

namespace lockstep {
namespace {

using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Pointwise;

TEST(CudaPlugin, NumbersAreReadBehindTheStream) {
  const Plugin plugin = load_library(built_plugin("by_values"));
  const auto result = [](const char* op, const Tensor& x) {
    return call_values(dispatcher().find(op), std::vector<Value>{x})[0];
  };
  const int64_t copies = hidden_copies().copies;
  const Tensor x = randn({70001}, {DType::kF32, kGpu});
  const Tensor y = x.mul(x);
  const double largest = result("values::largest", y).to_double();
  EXPECT_EQ(hidden_copies().copies, copies) << "ran on the cpu";
  EXPECT_EQ(largest, result("values::largest", y.to(kCPU)).to_double());

  // The CPU fallback computes operators without a GPU kernel.
  const Tensor positive = result("values::positives", x).tensor();
  EXPECT_EQ(positive.device(), kGpu);
  EXPECT_EQ(floats_of(positive), floats_of(result("values::positives", x.to(kCPU)).tensor()));
}

TEST(CudaPlugin, ItsKernelGivesWhatTheCpusDoes) {
  const Plugin plugin = load_library(built_plugin("rms_normalize"));
  EXPECT_EQ(dispatcher().find("my::rms_normalize").explain(Key::kCUDA),
            "kernel at " + plugin.path());
  for (const int64_t count : {int64_t{1}, int64_t{33}, int64_t{1024}, int64_t{70001}}) {
    SCOPED_TRACE(count);
    const Tensor x = randn({count});
    const int64_t copies = hidden_copies().copies;
    const Tensor y = call_op("my::rms_normalize", {x.to(kGpu), 0.25});
    EXPECT_EQ(y.device(), kGpu);
    EXPECT_EQ(hidden_copies().copies, copies) << "ran on the cpu";
    EXPECT_THAT(floats_of(y),
                Pointwise(FloatNear(1e-5f), floats_of(call_op("my::rms_normalize", {x, 0.25}))));
  }
  EXPECT_EQ(call_op("my::rms_normalize", {empty({0}, {DType::kF32, kGpu})}).numel(), 0);
}

TEST(CudaPlugin, ItsOperatorsCastAndDifferentiateOnTheGpuAsOnTheCpu) {
  const Plugin plugin = load_library(built_plugin("rms_normalize"));
  const Tensor half = call_op("my::rms_normalize", {full({8}, 3, {DType::kBF16, kGpu})});
  EXPECT_EQ(half.dtype(), DType::kBF16);
  EXPECT_THAT(floats_of(half), ::testing::Each(1.0f));

  const Tensor start = randn({40});
  const Tensor weights = randn({40});
  const auto gradient = [&](Device device) {
    const Tensor x = clone(start).to(device).set_requires_grad();
    (call_op("my::rms_normalize", {x}) * weights.to(device)).sum().backward();
    return floats_of(x.grad());
  };
  EXPECT_THAT(gradient(kGpu), Pointwise(FloatNear(1e-5f), gradient(kCPU)));
}

TEST(CudaPlugin, ItsKernelsAreQueuedOnTheCallersStream) {
  if (environment_flag("CUDA_LAUNCH_BLOCKING")) GTEST_SKIP() << "kernels are waited for";
  const Plugin plugin = load_library(built_plugin("rms_normalize"));
  const Plugin faults = load_library(built_plugin("gpu_faults"));
  std::vector<std::string> reports;
  stream_sanitizer::set_report_handler([&](const std::string& text) { reports.push_back(text); });
  stream_sanitizer::enable(true);
  const Tensor x = full({5000}, 3, {DType::kF32, kGpu});
  const OwnedStream side(kGpu);
  side.get().wait_stream(current_stream(kGpu));
  const auto number = [&x](const char* op) {
    return call_values(dispatcher().find(op), std::vector<Value>{x})[0].to_int();
  };
  Tensor y;
  {
    const StreamGuard guard(side.get());
    (void)call_op("my::rms_normalize", {x, 0.0});  // loads the module
    side.get().add_callback([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    y = call_op("my::rms_normalize", {x, 0.0});
    EXPECT_FALSE(side.get().query()) << "a kernel waited";
    side.get().synchronize();
    EXPECT_EQ(number("gpu::device"), 0);
    EXPECT_EQ(number("gpu::stream"), reinterpret_cast<int64_t>(cuda::runtime().native(side.get())));
  }
  stream_sanitizer::enable(false);
  stream_sanitizer::set_report_handler({});
  EXPECT_THAT(floats_of(y), ::testing::Each(1.0f));
  EXPECT_THAT(reports, IsEmpty());
}

TEST(CudaPlugin, ItsScratchIsOfTheDevicesAllocatorAndGoesBack) {
  const Plugin plugin = load_library(built_plugin("rms_normalize"));
  const Plugin faults = load_library(built_plugin("gpu_faults"));
  const Tensor x = full({5000}, 3, {DType::kF32, kGpu});
  Allocator& memory = allocator(kGpu);
  const MemoryStats before = memory.stats();
  Tensor y = call_op("my::rms_normalize", {x});
  EXPECT_EQ(memory.stats().allocations, before.allocations + 2) << "the result, and the sums";
  y = {};
  EXPECT_EQ(memory.stats().allocated, before.allocated);

  memory.reset_peak();
  expect_error<Error>([&] { call_op("gpu::takes_and_throws", {x}); },
                      "[gpu::takes_and_throws] changed its mind");
  EXPECT_GE(memory.stats().peak_allocated, before.allocated + (3 << 20));
  EXPECT_EQ(memory.stats().allocated, before.allocated);
  // Kernels on the CPU get their scratch memory from the CPU's allocator.
  const int64_t on_cpu = allocator(kCPU).stats().allocated;
  expect_error<Error>([&] { call_op("gpu::takes_and_throws", {empty({2})}); }, "changed its mind");
  EXPECT_EQ(allocator(kCPU).stats().allocated, on_cpu);
}

TEST(CudaPlugin, TheSanitizerSeesWhatItsKernelsUse) {
  const Plugin plugin = load_library(built_plugin("rms_normalize"));
  std::vector<std::string> reports;
  stream_sanitizer::set_report_handler([&](const std::string& text) { reports.push_back(text); });
  stream_sanitizer::enable(true);
  const Tensor x = full({64}, 3, {DType::kF32, kGpu});
  const Stream side = get_stream_from_pool(kGpu);
  {
    const StreamGuard guard(side);
    (void)call_op("my::rms_normalize", {x, 0.0});
  }
  stream_sanitizer::enable(false);
  stream_sanitizer::set_report_handler({});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0],
              ::testing::HasSubstr("[my::rms_normalize] on " + to_string(side) + " reads memory"));
  synchronize(kGpu);
}

TEST(CudaPlugin, LaunchesThatCannotBeAreErrorsOfTheOperator) {
  const Plugin plugin = load_library(built_plugin("gpu_faults"));
  const Tensor x = full({8}, 1, {DType::kF32, kGpu});
  expect_error<DeviceError>([&] { call_op("gpu::no_such_kernel", {x}); },
                            "[gpu::no_such_kernel] cannot launch \"no_such_kernel\"", "NOT_FOUND");
  expect_error<DeviceError>([&] { call_op("gpu::no_such_kernel", {empty({2})}); },
                            "launch is for kernels of LS_BACKEND_CUDA: this call is on cpu");
  expect_error<DeviceError>([&] { call_op("gpu::other_parameters", {x}); },
                            "[gpu::other_parameters]", "expected 48 bytes", "got 4");
  EXPECT_THAT(floats_of(x + 1), ::testing::Each(2.0f)) << "the device stays usable";
}

TEST(CudaPlugin, LoadedAgainItsModulesAreLoadedAgain) {
  const Tensor x = full({5000}, 3, {DType::kF32, kGpu});
  for (int time = 0; time < 2; ++time) {
    const Plugin plugin = load_library(built_plugin("rms_normalize"));
    EXPECT_THAT(floats_of(call_op("my::rms_normalize", {x, 0.0})), ::testing::Each(1.0f));
  }
}

}  // namespace
}  // namespace lockstep
