#pragma once

#include "core/cuda/runtime.h"
#include "core/device/device_runtime.h"
#include "tests/emulation/fake_driver.h"

namespace lockstep::cuda {

/// While alive, cuda:0 is the only cuda device, or the first of `devices`, of a fake driver.
struct FakeGpu {
  explicit FakeGpu(size_t granules = 64, int devices = 1)
      : fake(devices, granules * FakeDriver::kGranule) {
    before = set_device_runtime(DeviceType::kCUDA, &runtime);
  }
  ~FakeGpu() { set_device_runtime(DeviceType::kCUDA, before); }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  FakeDriver fake;
  Runtime runtime{[this] { return fake.load(); }};
  DeviceRuntime* before = nullptr;
};

}  // namespace lockstep::cuda
