// Errors of the environment and of programs, at the level of operators: each throws an error that
// explains it, and the process goes on. Each test runs in its own process, since devices are
// initialized once and some tests lose them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "core/cuda/availability.h"
#include "core/cuda/driver.h"
#include "core/cuda/runtime.h"
#include "core/memory/caching_allocator.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/conformance/elements.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/gpu.h"
#include "tests/emulation/fake_driver.h"

namespace lockstep::cuda {
namespace {

using ::testing::Each;

constexpr Device gpu(int8_t index) { return {DeviceType::kCUDA, index}; }
Tensor ones(int64_t count, Device device) { return full({count}, 1, {DType::kF32, device}); }

/// Reports by exit status and standard error, as the process runs only this test.
[[noreturn]] void finish() {
  const ::testing::TestResult& result =
      *::testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const ::testing::TestPartResult& part = result.GetTestPartResult(i);
    if (part.failed()) std::fprintf(stderr, "%s\n", part.message());
  }
  std::fflush(nullptr);
  std::_Exit(result.Failed() ? 1 : 0);
}

/// Runs `body` in a new process of this program.
template <class F>
void in_a_process_of_its_own(const F& body) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        body();
        finish();
      },
      ::testing::ExitedWithCode(0), "");
}

/// Two GPUs of 32 MiB each, which live as long as the process.
FakeDriver& two_small_gpus() {
  static auto* const fake = new FakeDriver(2, 16 * FakeDriver::kGranule);
  set_driver_loader([] { return fake->load(); });
  return *fake;
}

TEST(CudaBadInput, WithoutADriverErrorsSayWhyAndTheCpuWorks) {
  in_a_process_of_its_own([] {
    set_driver_loader([] { return load_driver("libno-such-driver.so.1"); });
    EXPECT_EQ(device_count(DeviceType::kCUDA), 0);
    expect_error<DeviceError>([] { (void)ones(4, gpu(0)); }, "cuda:0",
                              "libno-such-driver.so.1: cannot open shared object file");
    expect_error<DeviceError>([] { (void)ones(4, kCPU).to(gpu(0)); }, "cuda:0");
    EXPECT_THAT(floats_of(ones(4, kCPU) + ones(4, kCPU)), Each(2.0f));
  });
}

TEST(CudaBadInput, ADriverThatIsTooOldIsNamedWithBothVersions) {
  in_a_process_of_its_own([] {
    two_small_gpus().set_version(12040);
    EXPECT_EQ(device_count(DeviceType::kCUDA), 0);
    expect_error<DeviceError>([] { (void)ones(4, gpu(0)); }, "the driver is too old",
                              "got 12.4. Install a newer driver");
    EXPECT_THAT(availability().reason, ::testing::HasSubstr("the driver is too old"));
  });
}

TEST(CudaBadInput, ADeviceThatThereIsNotIsNamed) {
  in_a_process_of_its_own([] {
    two_small_gpus();
    EXPECT_EQ(device_count(DeviceType::kCUDA), 2);
    expect_error<DeviceError>([] { (void)ones(4, gpu(2)); }, "cuda:2", "cuda:0 to cuda:1");
    expect_error<DeviceError>([] { (void)ones(4, gpu(0)).to(gpu(5)); }, "cuda:5",
                              "cuda:0 to cuda:1");
    EXPECT_THAT(floats_of(ones(4, gpu(1))), Each(1.0f));
  });
}

TEST(CudaBadInput, WantOfMemoryIsReportedAndTheDeviceGoesOn) {
  in_a_process_of_its_own([] {
    two_small_gpus();
    const Tensor kept = ones(1 << 20, gpu(0));
    expect_error<OutOfMemoryError>([] { (void)ones(64 << 20, gpu(0)); }, "cuda:0", "256", "full",
                                   "budget");
    EXPECT_THAT(floats_of(kept + kept), Each(2.0f));
    // Smaller requests are still served, also on the other device.
    EXPECT_THAT(floats_of(ones(1 << 20, gpu(1))), Each(1.0f));
  });
}

TEST(CudaBadInput, AnIllegalAddressEndsTheDeviceAndNotTheProcess) {
  in_a_process_of_its_own([] {
    FakeDriver& fake = two_small_gpus();
    const Tensor x = ones(64, gpu(0));
    Tensor y = x + x;
    fake.poison(CUDA_ERROR_ILLEGAL_ADDRESS);
    for (int time = 0; time < 2; ++time) {
      expect_error<DeviceError>([] { synchronize(gpu(0)); }, "CUDA_ERROR_ILLEGAL_ADDRESS",
                                "An earlier kernel has failed", "compute-sanitizer");
    }
    // All later work fails with the same error.
    expect_error<DeviceError>([&] { (void)(y + x); }, "CUDA_ERROR_ILLEGAL_ADDRESS");
    expect_error<DeviceError>([&] { (void)y.to(kCPU); }, "CUDA_ERROR_ILLEGAL_ADDRESS");
    expect_error<DeviceError>([&] { x.fill_(3); }, "CUDA_ERROR_ILLEGAL_ADDRESS");
    y = {};
    EXPECT_THAT(floats_of(ones(4, kCPU) + ones(4, kCPU)), Each(2.0f));
  });
}

TEST(CudaBadInput, AGpuThatFailsInTheMidstSaysThatItWasTheGpu) {
  for (const CUresult result : {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_UNKNOWN}) {
    in_a_process_of_its_own([&] {
      FakeDriver& fake = two_small_gpus();
      const Tensor x = ones(64, gpu(0));
      const Tensor elsewhere = ones(64, kCPU);
      fake.poison(result);
      expect_error<DeviceError>([] { synchronize(gpu(0)); }, "Xid", "checkpoint");
      expect_error<DeviceError>([&] { (void)(x + x); }, "Xid");
      EXPECT_THAT(floats_of(elsewhere + elsewhere), Each(2.0f));
    });
  }
}

TEST(CudaBadInput, MemoryThatAnotherProcessHoldsIsToldApart) {
  in_a_process_of_its_own([] {
    FakeDriver& fake = two_small_gpus();
    const Tensor kept = ones(1 << 20, gpu(0));
    const Driver driver = fake.functions();
    const ContextGuard guard(runtime_of(gpu(0)).context(0));
    CUdeviceptr taken = 0;
    ASSERT_EQ(driver.cuMemAlloc(&taken, 20 << 20), CUDA_SUCCESS);
    expect_error<OutOfMemoryError>([] { (void)ones(4 << 20, gpu(0)); },
                                   "Other processes hold about 20.0 MiB of cuda:0", "nvidia-smi");
  });
}

TEST(CudaBadInput, TensorsOfTwoDevicesAreRefusedByTheOperator) {
  in_a_process_of_its_own([] {
    two_small_gpus();
    const Tensor first = ones(4, gpu(0));
    const Tensor second = ones(4, gpu(1));
    expect_error<DeviceError>([&] { (void)(first + second); }, "[add.Tensor]", "different devices",
                              "cuda:0", "cuda:1");
    expect_error<DeviceError>([&] { (void)(first + ones(4, kCPU)); }, "[add.Tensor]", "cuda:0",
                              "cpu");
    expect_error<DeviceError>([&] { first.add_(second); }, "[add", "cuda:1");
    EXPECT_THAT(floats_of(first + second.to(gpu(0))), Each(2.0f));
  });
}

TEST(CudaBadInput, MemoryGivenBackToAnotherDeviceIsIgnoredAndCounted) {
  in_a_process_of_its_own([] {
    two_small_gpus();
    CachingAllocator& mine = caching_allocator(gpu(0));
    CachingAllocator& other = caching_allocator(gpu(1));
    const Block block = mine.allocate(4096, default_stream(gpu(0)));
    void* const raw = mine.raw_alloc(4096, default_stream(gpu(0)));
    const int64_t allocated = mine.stats().allocated;
    other.free(block);
    EXPECT_EQ(other.wrong_frees(), 1);
    EXPECT_EQ(other.stats().allocated, 0);
    EXPECT_EQ(mine.stats().allocated, allocated) << "it is on loan still";
    expect_error<DeviceError>([&] { other.raw_delete(raw); }, "cuda:1");
    mine.free(block);
    mine.raw_delete(raw);
    EXPECT_EQ(mine.stats().allocated, 0);
    EXPECT_EQ(mine.wrong_frees(), 0);
  });
}

}  // namespace
}  // namespace lockstep::cuda
