#include "core/cuda/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/core/cuda/fake_gpu.h"
#include "tests/core/expect_error.h"

namespace lockstep::cuda {
namespace {

class CudaPattern : public ::testing::Test {
 protected:
  ~CudaPattern() override { EXPECT_THAT(fake.misuse(), ::testing::IsEmpty()); }

  FakeGpu gpu;
  FakeDriver& fake = gpu.fake;
  const lockstep::Stream stream{{DeviceType::kCUDA, 0}, 1};
};

TEST_F(CudaPattern, FindsWhatWasChangedSinceItWasFilled) {
  std::vector<uint64_t> memory(1000);
  uint64_t wrong = 0;
  fill_pattern(stream, memory.data(), 8000, 7);
  EXPECT_EQ(memory[0], 0u) << "queued, not run";
  count_wrong(stream, memory.data(), 8000, 7, &wrong);
  stream.synchronize();
  EXPECT_EQ(wrong, 0u);
  memory[17] ^= 1;
  memory[999] = 0;
  count_wrong(stream, memory.data(), 8000, 7, &wrong);
  stream.synchronize();
  EXPECT_EQ(wrong, 2u);
  wrong = 0;
  count_wrong(stream, memory.data(), 8000, 8, &wrong);
  stream.synchronize();
  EXPECT_EQ(wrong, 1000u) << "another seed, other words";
}

TEST_F(CudaPattern, LoadsTheModuleOnce) {
  std::vector<uint64_t> memory(8);
  for (int i = 0; i < 3; ++i) fill_pattern(stream, memory.data(), 64, 7);
  EXPECT_THAT(fake.take_calls(),
              ::testing::IsSupersetOf({"cuModuleLoadData", "cuLaunchKernel", "cuLaunchKernel"}));
  fill_pattern(stream, memory.data(), 64, 7);
  EXPECT_THAT(fake.take_calls(), ::testing::ElementsAre("cuLaunchKernel"));
  stream.synchronize();
}

TEST_F(CudaPattern, AModuleThatTheGpuCannotRunIsAnError) {
  std::array<uint64_t, 1> memory{};
  fake.fail("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  expect_error<DeviceError>([&] { fill_pattern(stream, memory.data(), 8, 7); },
                            "cuModuleLoadData failed", "LOCKSTEP_CUDA_ARCHITECTURES");
}

TEST_F(CudaPattern, RefusesMemoryThatIsNotOfWholeWords) {
  std::array<uint64_t, 2> memory{};
  expect_error<DeviceError>([&] { fill_pattern(stream, memory.data(), 9, 7); }, "multiples of 8");
  expect_error<DeviceError>(
      [&] { fill_pattern(stream, reinterpret_cast<std::byte*>(memory.data()) + 1, 8, 7); },
      "multiples of 8");
}

}  // namespace
}  // namespace lockstep::cuda
