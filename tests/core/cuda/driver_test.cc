#include "core/cuda/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "core/cuda/error.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/expect_error.h"
#include "tests/emulation/fake_driver.h"

namespace lockstep::cuda {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CudaDriver, ALibraryThatIsNotThereIsTheReason) {
  const LoadedDriver loaded = load_driver("libno-such-driver.so.1");
  EXPECT_EQ(loaded.devices, 0);
  EXPECT_THAT(loaded.reason, StartsWith("libno-such-driver.so.1: cannot open shared object file"));
}

TEST(CudaDriver, ALibraryWithoutAFunctionIsNamedWithTheFunction) {
  const LoadedDriver loaded = load_driver("libm.so.6");
  EXPECT_EQ(loaded.devices, 0);
  EXPECT_THAT(loaded.reason, StartsWith("libm.so.6 has no cuInit: expected a driver of CUDA 1"));
  EXPECT_EQ(loaded.functions.cuInit, nullptr);
}

TEST(CudaDriver, CountsTheDevices) {
  const FakeDriver fake(3);
  const LoadedDriver loaded = fake.load();
  EXPECT_EQ(loaded.devices, 3);
  EXPECT_EQ(loaded.reason, "");
}

TEST(CudaDriver, WithoutADeviceTheReasonSaysSo) {
  const EnvironmentVariable visible("CUDA_VISIBLE_DEVICES", nullptr);
  {
    FakeDriver fake;
    fake.fail("cuInit", CUDA_ERROR_NO_DEVICE);
    EXPECT_EQ(fake.load().reason, "the driver reports no device");
  }
  const FakeDriver fake(0);
  EXPECT_EQ(fake.load().reason, "the driver reports no device");
  EXPECT_EQ(fake.load().devices, 0);
}

TEST(CudaDriver, HiddenDevicesAreMentioned) {
  const EnvironmentVariable visible("CUDA_VISIBLE_DEVICES", "-1");
  FakeDriver fake;
  fake.fail("cuInit", CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(fake.load().reason, "the driver reports no device (CUDA_VISIBLE_DEVICES is \"-1\")");
}

TEST(CudaDriver, AFailingStartIsTheReason) {
  FakeDriver fake;
  fake.fail("cuInit", CUDA_ERROR_SYSTEM_NOT_READY);
  EXPECT_THAT(
      fake.load().reason,
      AllOf(StartsWith("cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY (what the driver says). "),
            EndsWith("`systemctl status nvidia-fabricmanager`")));
  EXPECT_EQ(fake.load().devices, 1);
}

TEST(CudaDriver, TwoDriversAndNamesOfDevicesThatAreNotThereAreToldApart) {
  const EnvironmentVariable visible("CUDA_VISIBLE_DEVICES", "MIG-0,GPU-8a1c1b9e");
  const auto reason = [](CUresult result) {
    FakeDriver fake;
    fake.fail("cuInit", result);
    return fake.load().reason;
  };
  EXPECT_THAT(reason(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH), HasSubstr("/proc/driver/nvidia/version"));
  EXPECT_THAT(reason(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE), HasSubstr("compat"));
  EXPECT_THAT(reason(CUDA_ERROR_INVALID_DEVICE),
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES is \"MIG-0,GPU-8a1c1b9e\""),
                    HasSubstr("nvidia-smi -L")));
  EXPECT_THAT(reason(CUDA_ERROR_NO_DEVICE), HasSubstr("MIG-0,GPU-8a1c1b9e"));
}

TEST(CudaDriver, TheToolkitsStubIsSaidToBeOne) {
  constexpr const char* kStub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  const LoadedDriver loaded = load_driver(kStub);
  if (loaded.reason.starts_with(kStub)) GTEST_SKIP() << loaded.reason;
  EXPECT_EQ(loaded.devices, 0);
  EXPECT_THAT(loaded.reason, AllOf(HasSubstr("cuInit failed"), HasSubstr("toolkit's stub")));
}

TEST(CudaError, SaysFunctionNameTextAndWhatToDo) {
  const FakeDriver fake;
  const Driver driver = fake.functions();
  expect_error<DeviceError>(
      [&] { check(driver, CUDA_ERROR_OUT_OF_MEMORY, "cuMemMap"); },
      "[cuda] cuMemMap failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory). `nvidia-smi` shows");
  EXPECT_NO_THROW(check(driver, CUDA_SUCCESS, "cuMemMap"));
}

TEST(CudaError, OneThatEndsTheDeviceSaysHowToFindItsKernel) {
  const FakeDriver fake;
  EXPECT_THAT(failure(fake.functions(), CUDA_ERROR_ILLEGAL_ADDRESS, "cuEventRecord"),
              AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("An earlier kernel"),
                    HasSubstr("compute-sanitizer")));
  EXPECT_TRUE(is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_FALSE(is_sticky(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_FALSE(is_sticky(CUDA_ERROR_INVALID_VALUE));
}

TEST(CudaError, OneOfTheGpuItselfDoesNotBlameAKernel) {
  const FakeDriver fake;
  for (const CUresult result :
       {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_CONTAINED,
        CUDA_ERROR_EXTERNAL_DEVICE, CUDA_ERROR_UNKNOWN}) {
    EXPECT_THAT(failure(fake.functions(), result, "cuEventRecord"),
                AllOf(HasSubstr("Xid"), HasSubstr("checkpoint"), Not(HasSubstr("kernel has"))));
  }
}

TEST(CudaError, OneThatTheDriverDoesNotKnowHasItsNumber) {
  const FakeDriver fake;
  EXPECT_THAT(failure(fake.functions(), static_cast<CUresult>(4711), "cuMemMap"),
              HasSubstr("error 4711"));
}

}  // namespace
}  // namespace lockstep::cuda
