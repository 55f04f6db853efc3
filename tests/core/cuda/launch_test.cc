#include "core/cuda/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <thread>
#include <vector>

#include "core/cuda/pattern_word.h"
#include "tests/core/cuda/runtime_fixture.h"
#include "tests/core/expect_error.h"

namespace lockstep::cuda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// The fake driver accepts any image with the magic number of a fatbin, and finds kernels by name.
constexpr uint64_t kImage[] = {0xba55ed50};
constexpr uint64_t kOther[] = {0xba55ed50};
const Kernel kFill(kImage, "fill_pattern");

class CudaLaunch : public CudaRuntime {
 protected:
  void launch(Kernel kernel, int device = 0) {
    runtime->launch_kernel(stream(1, device), kernel, {.threads = 32}, &pattern);
  }
  void launch_by_name(const char* kernel, size_t bytes) {
    runtime->launch_kernel(stream(1), kOther, kernel, {.threads = 32},
                           {reinterpret_cast<const std::byte*>(&pattern), bytes});
  }

  std::array<uint64_t, 32> words{};
  const Pattern pattern{words.data(), words.size(), 7};
};

TEST_F(CudaLaunch, AKernelIsFoundOnceOnEachDevice) {
  launch(kFill);
  fake.fail("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
  launch(kFill);
  expect_error<DeviceError>([&] { launch(kFill, 1); }, "cuModuleGetFunction failed");
  launch(kFill, 1);
  runtime->synchronize(0);
  EXPECT_EQ(words[31], pattern_word(7, 31));
}

TEST_F(CudaLaunch, ThreadsMayLaunchAKernelForTheFirstTimeAtOnce) {
  std::vector<std::thread> threads;
  std::latch begin(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int k = 0; k < 100; ++k) launch(kFill);
    });
  }
  for (std::thread& thread : threads) thread.join();
  runtime->synchronize(0);
  EXPECT_EQ(words[0], pattern_word(7, 0));
}

TEST_F(CudaLaunch, WhatWasUnloadedIsLoadedAgain) {
  launch(kFill);
  runtime->synchronize(0);
  (void)fake.take_calls();
  launch(kFill);
  EXPECT_THAT(fake.take_calls(), ElementsAre("cuLaunchKernel"));
  const void* const image = kImage;
  runtime->unload(std::span(&image, 1));
  (void)fake.take_calls();
  launch(kFill);
  EXPECT_THAT(fake.take_calls(), ElementsAre("cuModuleLoadData", "cuLaunchKernel"));
}

TEST_F(CudaLaunch, NamesAreForgottenWithTheirModule) {
  launch_by_name("fill_pattern", sizeof(Pattern));
  (void)fake.take_calls();
  launch_by_name("fill_pattern", sizeof(Pattern));
  EXPECT_THAT(fake.take_calls(), ElementsAre("cuLaunchKernel")) << "nothing is asked again";
  const void* const image = kOther;
  runtime->unload(std::span(&image, 1));
  launch_by_name("fill_pattern", sizeof(Pattern));
  EXPECT_THAT(fake.take_calls(), Contains("cuModuleLoadData"));
}

TEST_F(CudaLaunch, AKernelThatThereIsNotIsAnError) {
  expect_error<DeviceError>([&] { launch(Kernel(kImage, "no_such_kernel")); },
                            "cuModuleGetFunction failed");
  expect_error<DeviceError>([&] { launch(Kernel()); }, "there is no kernel");
  expect_error<DeviceError>([&] { launch_by_name("fill_pattern", 8); }, "expected 24 bytes",
                            "got 8");
}

TEST_F(CudaLaunch, KernelsKnowTheirNameAndImages) {
  const Kernel kernel(kImage, "my_kernel");
  EXPECT_EQ(kernel.name(), "my_kernel");
  EXPECT_THAT(kernel.images(), ElementsAre(static_cast<const void*>(kImage)));
  EXPECT_EQ(Kernel::all().back().number(), kernel.number());
  EXPECT_EQ(Kernel().number(), 0u);
}

TEST_F(CudaLaunch, AKindOfFaultHasOnePlaceOnEachDevice) {
  const FaultKind index("gather", "index out of range"), other("scatter", "index out of range");
  Fault* const place = runtime->faults(0).place(index);
  EXPECT_EQ(runtime->faults(0).place(index), place);
  EXPECT_NE(runtime->faults(0).place(other), place);
  EXPECT_NE(runtime->faults(1).place(index), place);
  *place = {.hit = 1, .reserved = 0, .value = 9, .low = 0, .high = 4};
  expect_error<Error>([&] { runtime->faults(0).check(); },
                      "[gather] index out of range: expected at least 0 and less than 4, got 9");
  runtime->faults(0).check();
  runtime->faults(1).check();
}

}  // namespace
}  // namespace lockstep::cuda
